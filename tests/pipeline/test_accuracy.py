import math

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch.ao.ns.fx.utils import compute_sqnr

from opsuite.pipeline.accuracy import (
    HALF_PRECISION,
    SINGLE_PRECISION,
    STATIC_INT8,
    Thresholds,
    disagreement,
    measure,
    worst_sqnr_db,
)

# In this range squares and their sums are far from the limits of float32, in which torch computes its figure.
values = st.floats(-(2.0**20), 2.0**20, width=32, allow_subnormal=False).filter(lambda x: x == 0 or abs(x) > 2.0**-20)
vectors = st.lists(values, min_size=1, max_size=20).map(lambda items: torch.tensor(items, dtype=torch.float64))
pairs = st.integers(1, 20).flatmap(
    lambda n: st.tuples(*(st.lists(values, min_size=n, max_size=n).map(torch.DoubleTensor) for _ in range(2)))
)
quick = settings(deadline=None)


def torchs_sqnr(reference, actual):
    # It takes float32 alone.
    return float(compute_sqnr(reference.float(), actual.float()))


@quick
@given(pairs)
def test_sqnr_is_torchs(pair):
    actual, reference = pair
    assume(bool((actual != reference).any()) and bool(reference.any()))
    assert measure(actual, reference).sqnr_db == pytest.approx(torchs_sqnr(reference, actual), abs=1e-2)


@quick
@given(pairs)
def test_centred_sqnr_is_torchs_of_the_centred_reference(pair):
    actual, reference = pair
    mean = reference.mean()
    spread = reference - mean
    assume(bool((actual != reference).any()) and float(spread.abs().max()) > 1e-3 * float(mean.abs()) + 1e-3)
    error = actual - reference
    expected = torchs_sqnr(spread, spread + error)
    assume(math.isfinite(expected))
    assert measure(actual, reference).sqnr_centred_db == pytest.approx(expected, abs=0.1)


@quick
@given(pairs, st.sampled_from([2.0**-8, 0.5, 4.0, -2.0]))
def test_sqnr_does_not_change_with_scale_but_absolute_errors_do(pair, scale):
    actual, reference = pair
    plain, scaled = measure(actual, reference), measure(actual * scale, reference * scale)
    assert scaled.sqnr_db == pytest.approx(plain.sqnr_db, abs=1e-6)
    assert scaled.max_abs == pytest.approx(plain.max_abs * abs(scale))
    assert scaled.mae == pytest.approx(plain.mae * abs(scale))


@quick
@given(pairs, st.randoms())
def test_figures_do_not_change_with_the_order_of_elements(pair, shuffler):
    actual, reference = pair
    order = list(range(len(actual)))
    shuffler.shuffle(order)
    plain, shuffled = measure(actual, reference), measure(actual[order], reference[order])
    assert shuffled.max_abs == plain.max_abs
    assert shuffled.mae == pytest.approx(plain.mae)
    assert shuffled.sqnr_db == pytest.approx(plain.sqnr_db)


@quick
@given(vectors)
def test_a_tensor_is_at_no_distance_from_itself(tensor):
    figures = measure(tensor, tensor.clone())
    assert (figures.max_abs, figures.mae, figures.sqnr_db) == (0.0, 0.0, math.inf)
    assert disagreement(tensor, tensor.clone(), SINGLE_PRECISION) is None


@quick
@given(pairs)
def test_more_error_is_never_a_better_figure(pair):
    actual, reference = pair
    worse = reference + 2 * (actual - reference)
    near, far = measure(actual, reference), measure(worse, reference)
    assert far.max_abs >= near.max_abs
    if near.sqnr_db is not None and math.isfinite(near.sqnr_db):
        # Twice the error is 20*log10(2) dB less.
        assert far.sqnr_db == pytest.approx(near.sqnr_db - 20 * math.log10(2), abs=1e-3)


def test_a_large_offset_does_not_hide_lost_resolution():
    signal = torch.linspace(-1, 1, 200)
    reference = signal + 1000
    actual = reference.round()  # most of the signal is gone
    figures = measure(actual, reference)
    assert figures.sqnr_db > 60
    assert figures.sqnr_centred_db < 10
    loose = Thresholds(atol=1.0, rtol=0.1, sqnr_db=20.0)
    assert "SQNR about the mean" in disagreement(actual, reference, loose)
    assert disagreement(signal + 1000.0001, reference, loose) is None


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_value_that_one_side_alone_has_lost_is_an_infinite_error(bad):
    reference = torch.ones(3)
    actual = torch.tensor([1.0, bad, 1.0])
    for got, want in ((actual, reference), (reference, actual)):
        figures = measure(got, want)
        assert (figures.max_abs, figures.sqnr_db) == (math.inf, -math.inf)
        assert disagreement(got, want, STATIC_INT8) is not None
    assert measure(actual, actual.clone()).max_abs == 0.0
    assert disagreement(actual, actual.clone(), SINGLE_PRECISION) is None


def test_opposite_infinities_differ():
    assert measure(torch.tensor([math.inf]), torch.tensor([-math.inf])).max_abs == math.inf


@pytest.mark.parametrize(
    ("actual", "reference", "words"),
    [
        (torch.ones(2, 3), torch.ones(3, 2), "shape (2, 3) instead of (3, 2)"),
        (torch.ones(1), torch.ones(()), "shape (1,) instead of ()"),
        (torch.ones(2), torch.ones(2, dtype=torch.int32), "dtype float32 instead of int32"),
        (torch.ones(2).half(), torch.ones(2), "dtype float16 instead of float32"),
        (torch.tensor([1, 2]), torch.tensor([1, 3]), "1 of 2 int64 elements differ"),
        (torch.tensor([True]), torch.tensor([False]), "1 of 1 bool elements differ"),
        (torch.tensor([1.0, 2.0]), torch.tensor([1.0, 3.0]), "1 of 2 elements differ by more than"),
    ],
)
def test_what_disagrees_is_named(actual, reference, words):
    assert words in disagreement(actual, reference, SINGLE_PRECISION)


def test_figures_that_do_not_exist_are_none():
    empty = measure(torch.ones(0), torch.ones(0))
    assert (empty.max_abs, empty.sqnr_db, empty.sqnr_centred_db) == (0.0, None, None)
    assert measure(torch.ones(3), torch.zeros(3)).sqnr_db is None
    constant = measure(torch.full((3,), 0.4), torch.full((3,), 0.3))
    assert constant.sqnr_centred_db is None
    with pytest.raises(ValueError, match="shapes differ"):
        measure(torch.ones(2), torch.ones(3))


def test_the_worst_figure_is_about_the_mean_where_there_is_one():
    figures = [
        measure(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 2.5])),
        measure(torch.full((2,), 0.4), torch.full((2,), 0.3)),
    ]
    expected = min(figures[0].sqnr_centred_db, figures[1].sqnr_db)
    assert worst_sqnr_db(figures) == expected
    assert worst_sqnr_db([]) is None


def test_small_outputs_are_held_to_sqnr_where_an_absolute_tolerance_passes_anything():
    reference = torch.linspace(-1e-3, 1e-3, 50)
    for thresholds in (HALF_PRECISION, STATIC_INT8):
        assert "SQNR" in disagreement(torch.zeros(50), reference, thresholds)
