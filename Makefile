# Both commands set up what they need; `make suite` runs the main job, `make test` passes the tests.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
TORCH := $(shell grep '^torch==' constraints.txt)

.PHONY: suite test lint wheel clean help

help:
	@echo "make suite   the peer's operators suite through coreml_static_int8, to the end (ARGS=... adds options)"
	@echo "make test    the tests (ARGS=... adds options)"
	@echo "make lint    ruff and mypy"
	@echo "make wheel   build the wheel, install it in a clean venv, run a suite from it"

# Exit code 100 says that the run ended and found failures, which is what a suite is for.
suite: $(READY)
	$(BIN)/opsuite run executorch:operators --flow coreml_static_int8 $(ARGS) || test $$? -eq 100

test: $(READY)
	$(BIN)/python -m pytest $(ARGS)

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# torch comes first and by its pinned version: whatever asks for it later finds the CPU build installed.
$(READY): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --disable-pip-version-check $(TORCH)
	$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $(READY)

wheel: $(READY)
	rm -rf dist build/wheel-venv
	$(BIN)/python -m build --wheel --outdir dist
	$(PYTHON) -m venv build/wheel-venv
	build/wheel-venv/bin/python -m pip install -q --disable-pip-version-check $(TORCH)
	build/wheel-venv/bin/python -m pip install -q --disable-pip-version-check -c constraints.txt dist/*.whl
	build/wheel-venv/bin/python -m pip check
	cd build && wheel-venv/bin/opsuite run operators --flow xnnpack -k conv1d -o "$$(mktemp -d)"

clean:
	rm -rf $(VENV) dist build
