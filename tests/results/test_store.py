import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from opsuite.exits import Exit, OpsuiteError
from opsuite.results.record import ErrorInfo
from opsuite.results.store import DAMAGED, PLAN, RECORDS, PlanItem, RunDirectory, load_plan, load_records, log_name

# The fixtures used below are of the session and never written to.
shares_fixtures = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


def damaged_lines():
    """Bytes that are no record, without a line's end; a blank line among them."""
    return st.binary(max_size=40).filter(lambda line: b"\n" not in line and not line.lstrip().startswith(b"{"))


@shares_fixtures
@given(data=st.data())
def test_any_truncation_keeps_exactly_the_whole_lines(tmp_path_factory, records, data):
    lines = [record.to_line().encode() + b"\n" for record in records]
    whole = b"".join(lines)
    length = data.draw(st.integers(0, len(whole)))
    path = tmp_path_factory.getbasetemp() / "truncated.jsonl"
    path.write_bytes(whole[:length])
    ends = [len(b"".join(lines[: number + 1])) for number in range(len(lines))]
    kept = sum(end <= length for end in ends)
    loaded = load_records(path)
    assert loaded.records == records[:kept]
    assert loaded.damaged == ([] if length in (0, *ends) else [kept + 1])


@shares_fixtures
@given(data=st.data())
def test_damaged_lines_anywhere_cost_no_whole_line(tmp_path_factory, plan, records, data):
    lines = [record.to_line().encode() for record in records]
    damaged = set()
    for line in data.draw(st.lists(damaged_lines(), max_size=4)):
        lines.insert(data.draw(st.integers(0, len(lines))), line)
    whole = {record.to_line().encode() for record in records}
    damaged = [number for number, line in enumerate(lines, start=1) if line not in whole]
    directory = tmp_path_factory.mktemp("run")
    (directory / PLAN).write_text(plan.model_dump_json())
    (directory / RECORDS).write_bytes(b"".join(line + b"\n" for line in lines))
    assert load_records(directory / RECORDS).damaged == damaged
    with RunDirectory.resume(directory) as resumed:
        assert resumed.records == records
        assert resumed.damaged == damaged
        assert resumed.remaining == []
    assert load_records(directory / RECORDS).damaged == []
    assert load_records(directory / RECORDS).records == records
    if damaged:
        aside = (directory / DAMAGED).read_bytes()
        assert aside == b"".join(lines[number - 1] + b"\n" for number in damaged)


def test_a_line_of_endless_brackets_is_damaged(tmp_path, records):
    path = tmp_path / RECORDS
    path.write_text("[" * 100_000 + "\n" + records[0].to_line() + "\n")
    assert load_records(path).records == records[:1]


def test_the_last_record_of_a_case_counts(tmp_path, records):
    path = tmp_path / RECORDS
    again = records[0].model_copy(update={"outcome": "timeout"})
    path.write_text("".join(record.to_line() + "\n" for record in [*records, again]))
    assert load_records(path).records == [again, *records[1:]]


def test_appended_records_are_on_disk_before_the_directory_is_closed(tmp_path, plan, records):
    with RunDirectory.create(tmp_path / "run", plan) as run:
        for number, record in enumerate(records, start=1):
            run.append(record)
            assert len(load_records(run.path / RECORDS).records) == number
            assert len(run.remaining) == len(records) - number


def test_what_is_appended_behind_a_cut_line_begins_on_a_new_one(tmp_path, plan, records):
    with RunDirectory.create(tmp_path / "run", plan) as run:
        run.append(records[0])
        run.append(records[1])
    path = tmp_path / "run" / RECORDS
    path.write_bytes(path.read_bytes()[:-20])
    with RunDirectory.resume(tmp_path / "run") as run:
        assert run.remaining == plan.items[1:]
        run.append(records[1])
    loaded = load_records(path)
    assert (loaded.records, loaded.damaged) == (records[:2], [])


def test_the_plan_reads_back(tmp_path, plan):
    RunDirectory.create(tmp_path / "run", plan).__exit__()
    assert load_plan(tmp_path / "run") == plan


def test_a_held_directory_is_refused_to_others_and_let_go_of_at_the_end(tmp_path, plan):
    with RunDirectory.create(tmp_path / "run", plan):
        for take in (
            lambda: RunDirectory.create(tmp_path / "run", plan),
            lambda: RunDirectory.resume(tmp_path / "run"),
        ):
            with pytest.raises(OpsuiteError, match="another run is writing"):
                take()
    RunDirectory.resume(tmp_path / "run").__exit__()


@given(st.lists(st.text(min_size=1), min_size=2, max_size=2, unique=True))
def test_log_names_are_unique_and_stay_inside_the_directory(ids):
    names = [log_name(PlanItem(id=case_id, suite="suite", flow="portable")) for case_id in ids]
    assert names[0] != names[1]
    for name in names:
        parts = Path(name).parts
        assert parts[:2] == ("logs", "portable")
        assert len(parts) == 3
        assert len(parts[2].encode()) <= 255  # what file systems allow


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 64 KiB."""
    path = tmp_path / "disk"
    path.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", path], capture_output=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip("mounting is not permitted here")
    yield path
    subprocess.run(["umount", "-l", path], check=True)


def test_a_full_disk_ends_the_run_without_losing_a_record(small_disk, plan, records):
    long = [
        record.model_copy(update={"error": ErrorInfo(type="Error", message="x" * 2000), "outcome": "fail:lower"})
        for record in records
    ]
    written = 0
    with RunDirectory.create(small_disk / "run", plan) as run:
        # Room for some of the records, and not for all of them.
        filler = small_disk / "filler"
        free = os.statvfs(small_disk)
        filler.write_bytes(b"\0" * (free.f_bavail * free.f_frsize - os.sysconf("SC_PAGE_SIZE")))
        with pytest.raises(OpsuiteError, match="No space left on device; free some space") as refused:
            for record in long:
                run.append(record)
                written += 1
    assert refused.value.code is Exit.INCOMPLETE
    assert 0 < written < len(long)
    filler.unlink()
    with RunDirectory.resume(small_disk / "run") as run:
        assert run.records == long[:written]
        for record in long[written:]:
            run.append(record)
    assert load_records(small_disk / "run" / RECORDS).records == long


def test_a_disk_without_room_for_the_plan_is_named(small_disk, plan):
    free = os.statvfs(small_disk)
    (small_disk / "filler").write_bytes(b"\0" * (free.f_bavail * free.f_frsize))
    with pytest.raises(OpsuiteError, match=r"cannot write output directory .*No space left"):
        RunDirectory.create(small_disk / "run", plan)


def test_an_error_of_the_disk_names_the_file_and_how_to_go_on(tmp_path, plan, records):
    class Broken:
        def write(self, data):
            raise OSError(5, "Input/output error")

        def close(self):
            pass

    with RunDirectory.create(tmp_path / "run", plan) as run:
        run._file.close()
        run._file = Broken()
        with pytest.raises(OpsuiteError, match=r"records\.jsonl: Input/output error; go on with --resume"):
            run.append(records[0])
        assert run.records == []
