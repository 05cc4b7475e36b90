import sys
import types

import pytest

import opsuite
from opsuite.accelerate import switch
from opsuite.accelerate.seams import Part, Seam, digest_of, locate
from opsuite.accelerate.table import parts_for


def greet(name):
    return f"hello {name}"


class Holder:
    @staticmethod
    def static(name):
        return name


@pytest.fixture
def library(monkeypatch):
    module = types.ModuleType("a_library")
    module.greet, module.Holder = greet, Holder
    monkeypatch.setitem(sys.modules, "a_library", module)
    return module


@pytest.fixture
def table(monkeypatch, library):
    undone = []
    loud = Part(
        "loud",
        "greets loudly",
        (Seam("a_library:greet", parameters=("name",)),),
        lambda originals: (
            {"a_library:greet": lambda name: originals["a_library:greet"](name).upper()},
            lambda: undone.append("loud"),
        ),
    )
    extra = Part(
        "extra",
        "adds a method",
        (Seam("a_library:Holder.static"), Seam("a_library:Holder.added", absent=True)),
        lambda _: ({"a_library:Holder.added": lambda self: "added"}, None),
    )
    gone = Part("gone", "needs what is not there", (Seam("a_library:missing"),), lambda _: ({}, None))
    monkeypatch.setattr(switch, "parts_for", lambda patterns: (loud, extra, gone))
    return undone


def test_a_part_is_applied_and_taken_back_exactly(library, table):
    before = {name: dict(vars(owner)) for name, owner in (("module", library), ("class", Holder))}
    on = opsuite.accelerate()
    assert library.greet("you") == "HELLO YOU"
    assert Holder().added() == "added"
    on.undo()
    assert dict(vars(library)) == before["module"]
    assert dict(vars(Holder)) == before["class"]
    assert table == ["loud"]


def test_calls_nest_and_the_last_one_out_restores(library, table):
    outer = opsuite.accelerate()
    with opsuite.accelerate(["loud"]):
        assert library.greet("you") == "HELLO YOU"
    assert library.greet("you") == "HELLO YOU"
    outer.undo()
    outer.undo()
    assert library.greet is greet


def test_applying_twice_wraps_once(library, table):
    opsuite.accelerate()
    first = library.greet
    opsuite.accelerate()
    assert library.greet is first
    opsuite.accelerate.undo()
    assert library.greet is greet


def test_an_error_inside_the_block_restores(library, table):
    with pytest.raises(ZeroDivisionError), opsuite.accelerate():
        1 / 0  # noqa: B018
    assert library.greet is greet


def test_what_is_left_alone_says_why(table):
    on = opsuite.accelerate()
    states = {row.name: (row.state, row.reason) for row in on.rows}
    assert states["loud"] == ("applied", "")
    assert states["gone"] == ("left alone", "a_library:missing does not exist")
    assert on.applied == ["loud", "extra"]
    assert "gone: left alone: a_library:missing does not exist" in repr(on)


def test_status_lists_every_part(table):
    assert [row.state for row in opsuite.accelerate.status()] == ["available", "available", "left alone"]
    with opsuite.accelerate(["loud"]):
        assert [row.state for row in opsuite.accelerate.status()] == ["applied", "available", "left alone"]


def test_parts_are_chosen_by_name(library, table):
    with opsuite.accelerate(without=["loud"]) as on:
        assert library.greet is greet
        assert on.applied == ["extra"]
    with pytest.raises(ValueError, match="no part named lout; parts are loud, extra, gone"):
        opsuite.accelerate(["lout"])


@pytest.mark.parametrize(
    ("seam", "reason"),
    [
        (Seam("no_such_library:x"), "no_such_library cannot be imported (ModuleNotFoundError"),
        (Seam("a_library:Holder.nothing"), "a_library:Holder.nothing does not exist"),
        (Seam("a_library:Nobody.nothing"), "a_library:Nobody.nothing does not exist"),
        (Seam("a_library:greet", parameters=("name", "**more")), "takes (name) instead of (name, **more)"),
        (Seam("a_library:greet", mentions=("shout",)), "a_library:greet no longer uses shout"),
        (Seam("a_library:greet", sources=frozenset(("0" * 16,))), "the source of a_library:greet is not one that"),
        (Seam("a_library:greet", absent=True), "a_library:greet exists already"),
    ],
)
def test_an_unknown_attribute_is_described(library, seam, reason):
    found = locate(seam)
    assert isinstance(found, str)
    assert reason in found


def test_a_known_source_is_recognised(library):
    seam = Seam("a_library:greet", parameters=("name",), sources=frozenset((digest_of(greet),)))
    assert locate(seam).value is greet


def test_every_seam_of_every_part_is_as_before_afterwards():
    seams = [seam for part in parts_for("cache") for seam in part.seams]
    found = {seam.where: result for seam in seams if not isinstance(result := locate(seam), str)}
    with opsuite.accelerate() as on:
        assert len(on.applied) >= len(parts_for("cache")) - 1, on
        changed = [where for where, item in found.items() if vars(item.owner).get(item.name) is not item.value]
        assert len(changed) >= len(on.applied) - 3
    for where, item in found.items():
        assert vars(item.owner).get(item.name, item.value) is item.value, where


def test_an_unknown_strategy_names_those_there_are():
    with pytest.raises(ValueError, match="no pattern strategy named 'magic'; strategies are cache, table"):
        opsuite.accelerate(patterns="magic")


def test_suspending_sets_aside_and_remembers(library, table):
    with opsuite.accelerate():
        loud = library.greet
        with switch.suspended():
            assert library.greet is greet
            assert table == []
        assert library.greet is loud
