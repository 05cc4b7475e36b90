import pytest
from _pytest.mark import KeywordMatcher
from _pytest.mark.expression import Expression
from hypothesis import given
from hypothesis import strategies as st

from opsuite.engine.select import compile_selection
from opsuite.exits import OpsuiteError

IDS = [
    "operators/conv2d/stride@2x1",
    "operators/add/alpha@2",
    "executorch:operators/test_add.py::test_add_dtype[float32]#1",
    "executorch:operators/test_Conv2D.py::test_x#12",
]
words = st.sampled_from(["conv2d", "CONV2D", "add", "stride@2x1", "test_add.py::test_add", "[float32]", "no", "1"])
expressions = st.recursive(
    words,
    lambda inner: st.one_of(
        inner.map(lambda one: f"not {one}"),
        st.tuples(inner, st.sampled_from(["and", "or"]), inner).map(" ".join),
        inner.map(lambda one: f"({one})"),
    ),
    max_leaves=6,
)


@given(expressions, st.sampled_from(IDS))
def test_an_expression_selects_what_pytest_would_select(expression, case_id):
    try:
        expected = Expression.compile(expression).evaluate(KeywordMatcher({case_id}))
    except SyntaxError:
        with pytest.raises(OpsuiteError, match="is not an expression"):
            compile_selection(expression)
    else:
        assert compile_selection(expression)(case_id) == expected


@pytest.mark.parametrize("expression", ["", "  "])
def test_no_expression_selects_everything(expression):
    assert all(map(compile_selection(expression), IDS))


@pytest.mark.parametrize("expression", ["(", "add and", "add or or add", "not", "add add", "a == b"])
def test_a_malformed_expression_is_named(expression):
    with pytest.raises(OpsuiteError, match=r"-k .* is not an expression"):
        compile_selection(expression)


def test_call_parameters_are_refused_as_pytest_refuses_them():
    with pytest.raises(pytest.UsageError):
        Expression.compile("add(n=1)").evaluate(KeywordMatcher({"add"}))
    with pytest.raises(OpsuiteError, match="takes no parameters"):
        compile_selection("add(n=1)")("add")
