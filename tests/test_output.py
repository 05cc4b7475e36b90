import os
import subprocess
import sys

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from opsuite.output import LOG_LIMIT, cap, captured, quiet, recorded, tail

MARK_LIMIT = 100
"""More than the bytes of the line that says how much was left out."""


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(content=st.binary(max_size=3000), limit=st.integers(2, 2000))
def test_a_capped_log_keeps_its_beginning_and_its_end(tmp_path, content, limit):
    path = tmp_path / "log"
    path.write_bytes(content)
    cut = cap(path, limit)
    left = path.read_bytes()
    assert cut == (len(content) > limit)
    if not cut:
        assert left == content
        return
    half = limit // 2
    assert left.startswith(content[:half])
    assert left.endswith(content[-half:])
    assert b"[... %d bytes left out ...]" % (len(content) - 2 * half) in left
    assert len(left) <= limit + MARK_LIMIT


def test_a_writer_goes_on_behind_what_a_cap_left(tmp_path):
    path = tmp_path / "log"
    with path.open("ab", buffering=0) as writer:
        writer.write(b"first" + b"." * 2 * LOG_LIMIT)
        assert cap(path)
        writer.write(b"last")
    left = path.read_bytes()
    assert left.startswith(b"first")
    assert left.endswith(b"....last")
    assert b"\0" not in left


def test_a_log_that_is_not_there_is_left_alone(tmp_path):
    assert not cap(tmp_path / "none")
    assert tail(tmp_path / "none") == ""


def test_the_tail_is_the_last_lines(tmp_path):
    path = tmp_path / "log"
    path.write_text("".join(f"line {number}\n" for number in range(5000)))
    assert tail(path, lines=2) == "line 4998\nline 4999"


def test_output_of_this_process_and_of_its_children_is_caught(tmp_path, capfd):
    path = tmp_path / "log"
    with captured(path):
        os.write(1, b"descriptor 1\n")
        os.write(2, b"descriptor 2\n")
        subprocess.run([sys.executable, "-c", "print('a child')"], check=True)
    os.write(1, b"afterwards")
    assert path.read_text() == "descriptor 1\ndescriptor 2\na child\n"
    assert capfd.readouterr().out == "afterwards"


def test_what_is_recorded_is_printed_after_all(capfd):
    with recorded() as said:
        os.write(2, b"native words\n")
        assert said() == "native words"
    assert "native words" in capfd.readouterr().err


def test_what_is_recorded_inside_a_log_is_in_it_at_once(tmp_path):
    path = tmp_path / "log"
    with captured(path):
        os.write(2, b"before\n")
        with recorded() as said:
            os.write(2, b"native words\n")
            assert said() == "native words\n"
            assert path.read_text() == "before\nnative words\n"
    assert path.read_text() == "before\nnative words\n"


def test_quiet_shows_what_it_kept_only_for_an_error(capfd):
    with quiet():
        os.write(2, b"noise\n")
    assert capfd.readouterr() == ("", "")
    try:
        with quiet():
            os.write(2, b"a hint\n")
            raise ValueError
    except ValueError:
        pass
    assert "a hint" in capfd.readouterr().err
