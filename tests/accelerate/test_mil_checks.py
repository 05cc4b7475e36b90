import pytest
from coremltools.converters.mil import Builder as mb
from coremltools.converters.mil.mil import types
from coremltools.converters.mil.mil.var import InternalVar

import opsuite
from opsuite.accelerate.mil_checks import is_sound, nothing_to_propagate


@pytest.fixture
def program():
    @mb.program(input_specs=[mb.TensorSpec((2, 3)), mb.TensorSpec((2, 3))])
    def build(x, y):
        z = mb.add(x=x, y=y)
        return mb.mul(x=z, y=z), mb.concat(values=[x, z, x], axis=0)

    return build


def main(program):
    return program.functions["main"]


def forget_a_consumer(function):
    op = next(op for op in function.operations if op.op_type == "add")
    op.outputs[0].child_ops.pop()


def add_a_consumer(function):
    op = next(op for op in function.operations if op.op_type == "add")
    op.outputs[0].child_ops.append(op.outputs[0].child_ops[0])


def put_last_first(function):
    ops = list(function.operations)
    function.operations = [ops[-1], *ops[:-1]]


def forget_the_block(function):
    function.outputs[0].consuming_blocks.clear()


def internal_that_is_not_there(function):
    function._internal_vars.add(InternalVar("nothing"))


def test_a_sound_program_is_accepted(program):
    assert is_sound(main(program), InternalVar)
    with opsuite.accelerate(["mil-checks"]):
        program.validate()


@pytest.mark.parametrize(
    "break_it",
    [forget_a_consumer, add_a_consumer, put_last_first, forget_the_block, internal_that_is_not_there],
)
def test_a_broken_program_is_refused_with_the_same_words(program, break_it):
    break_it(main(program))
    assert not is_sound(main(program), InternalVar)
    with pytest.raises(Exception) as plain:
        program.validate()
    with opsuite.accelerate(["mil-checks"]), pytest.raises(type(plain.value)) as accelerated:
        program.validate()
    assert str(accelerated.value) == str(plain.value)


def test_missing_scopes_are_still_found(program):
    from coremltools.converters.mil.mil.scope import ScopeSource

    main(program)._add_essential_scope_source(ScopeSource.TORCHSCRIPT_MODULE_TYPE)
    with opsuite.accelerate(["mil-checks"]):
        program.validate()
        with pytest.raises(ValueError, match="missing essential scopes"):
            program.validate(check_essential_scope=True)


def test_nested_blocks_go_to_the_original():
    @mb.program(input_specs=[mb.TensorSpec((1,), dtype=types.bool), mb.TensorSpec((2,))])
    def build(pred, x):
        pred = mb.squeeze(x=pred)
        return mb.cond(pred=pred, _true_fn=lambda: mb.add(x=x, y=1.0), _false_fn=lambda: mb.add(x=x, y=2.0))

    assert not is_sound(main(build), InternalVar)
    assert not nothing_to_propagate(main(build))
    with opsuite.accelerate(["mil-checks"]):
        build.validate()


def test_variables_that_must_stay_are_propagated(program):
    assert nothing_to_propagate(main(program))
    first = next(op for op in main(program).operations if op.op_type == "add").outputs[0]
    first._nonreplaceable_vars_upstream = {first}
    assert not nothing_to_propagate(main(program))
    with opsuite.accelerate(["mil-checks"]):
        main(program)._propagate_nonreplaceable_vars()
    assert first._nonreplaceable_vars_upstream == set()
