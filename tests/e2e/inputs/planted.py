"""Cases that misbehave, beside ones that do not: each must cost itself alone."""

import ctypes
import os
import subprocess
import sys
import time
from pathlib import Path

import torch

from opsuite.cases import Case, function_module

CHUNK = 64 << 20
MOST = 40 * CHUNK  # a test that fails must not take the machine's memory


def note(name, text):
    Path(os.environ["OPSUITE_SCRATCH"], name).write_text(str(text))


def segfault(x):
    print("printed before the fault", flush=True)
    ctypes.string_at(0)


def leave(code):
    def leave(x):
        print(f"printed before os._exit({code})")
        os._exit(code)

    return leave


def say_goodbye(x):
    sys.exit(0)


def interrupt(x):
    raise KeyboardInterrupt


def undecodable(x):
    raise ValueError(os.fsdecode(b"caf\xe9"))


def hang(x):
    sleeper = [sys.executable, "-c", "import time; time.sleep(600)"]
    note("child", subprocess.Popen(sleeper).pid)
    note("daemon", subprocess.Popen(sleeper, start_new_session=True).pid)
    print("printed before the hang", flush=True)
    time.sleep(600)


def eat_memory(x):
    print("printed before the memory ran out")
    held = []
    while len(held) * CHUNK < MOST:
        held.append(bytearray(os.urandom(1) * CHUNK))
        time.sleep(0.05)
    time.sleep(600)


def print_endlessly(x):
    print("the first line")
    while True:
        print("again and again " * 100)


def crash_when_executed():
    from opsuite.runtime import native

    class Runtime:
        def load_program(self, pte):
            os.write(2, b"native words before the fault\n")
            ctypes.string_at(0)

    # The worker dies of it, so no other case sees it.
    native.is_available, native.missing_kernels, native._runtime = lambda name: True, lambda ops: [], Runtime
    return function_module(torch.abs), (torch.randn(3),)


def case(case_id, function, *shape):
    return Case(case_id, lambda: (function_module(function), (torch.randn(*shape),)))


CASES = [
    case("fine/first", torch.sigmoid, 3, 4),
    case("segfault", segfault, 2),
    case("exit/0", leave(0), 2),
    case("exit/3", leave(3), 2),
    case("sys_exit", say_goodbye, 2),
    case("interrupt", interrupt, 2),
    case("hang", hang, 2),
    case("memory", eat_memory, 2),
    case("printer", print_endlessly, 2),
    case("undecodable", undecodable, 2),
    Case("native_crash", crash_when_executed),
    case("fine/last", lambda x: torch.softmax(x, 1).exp(), 5, 6),
]
