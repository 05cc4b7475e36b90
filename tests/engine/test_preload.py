import os
import subprocess
import sys

import pytest

from opsuite.engine import preload


@pytest.mark.parametrize("meant", [True, False])
def test_only_the_processes_of_the_run_itself_are_prepared(tmp_path, meant):
    log = tmp_path / "preload.log"
    described = preload.describe(flows=[], suites=[], log=str(log))
    if not meant:
        described = described.replace(str(os.getpid()), str(os.getppid()))
    ended = subprocess.run(
        [sys.executable, "-c", "import opsuite.engine.preload; print('said')"],
        env={**os.environ, preload.VARIABLE: described},
        capture_output=True,
        text=True,
        check=True,
    )
    assert (ended.stdout == "") == log.exists() == meant
    assert "said" in (log.read_text() if meant else ended.stdout)
