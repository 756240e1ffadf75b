"""`Index.of` warns where rounding loses vectors among their neighbours, whatever the others look like."""

from typing import Literal

import numpy as np
import pytest
from keywright import search
from tests.search.cases import METRICS, vectors

STORED = vectors(300, 6)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("change", ["nothing", "one vector", "offset", "half of them"])
def test_rounding_that_hides_vectors_warns(metric: search.Metric, change: str) -> None:
    changed = {
        "nothing": STORED,
        "one vector": np.concatenate([STORED[:1] * 1e4, STORED[1:]]),
        "offset": STORED + 1e6,
        "half of them": STORED * np.where(np.arange(300)[:, None] % 2, 1e-4, 1.0),
    }[change]
    hidden = {
        "cosine": {"offset"},
        "dot": {"offset", "one vector", "half of them"},
        "euclidean": {"one vector", "half of them"},
    }[metric]
    if change in hidden:
        with pytest.warns(UserWarning, match="told apart"):
            search.Index.of(changed, metric=metric)
    else:
        search.Index.of(changed, metric=metric)


@pytest.mark.parametrize("metric", ["dot", "euclidean"])
@pytest.mark.parametrize("count", [20, 200, 4000])
@pytest.mark.parametrize("share", [0.05, 0.2, 0.5, 0.95])
@pytest.mark.parametrize("scale", [1e-3, 1e-30, 1e-300])
def test_each_vector_is_judged_by_its_own_neighbours(
    metric: search.Metric, count: int, share: float, scale: float
) -> None:
    """Also where small and large vectors alternate: no period of theirs decides which are in the sample."""
    small = np.arange(count) % 20 < 20 * share
    stored = vectors(count, 6) * np.where(small, scale, 1.0)[:, None]
    lonely = np.count_nonzero(small) < 2
    quantisation = search.Quantisation(6, metric, radius=10.0)
    assert quantisation.coarseness(stored) == pytest.approx(0 if lonely else share, abs=0.05)


@pytest.mark.parametrize("metric", METRICS)
def test_rounding_that_changes_nothing_loses_no_vector(metric: search.Metric) -> None:
    """Whole numbers at a radius of as many levels; equal vectors; for cosines, multiples of one."""
    whole = np.rint(vectors(300, 6))
    whole = np.concatenate([whole[whole.any(axis=1)]] * 3)
    if metric == "cosine":
        whole = np.concatenate([vectors(5, 6), vectors(5, 6) * 3, vectors(5, 6) * 0.1])
    assert search.Quantisation(6, metric, radius=320.0).coarseness(whole) == 0
    assert search.Quantisation(6, metric, radius=320.0).coarseness(whole[:1]) == 0


@pytest.mark.parametrize("metric", METRICS)
def test_vectors_that_differ_in_signs_alone_are_different(metric: search.Metric) -> None:
    """Beside one large component, rounding makes all of them equal."""
    signs = 1.0 - 2 * (np.arange(512)[:, None] >> np.arange(9) & 1)
    even = signs[signs.prod(axis=1) > 0]
    stored = np.concatenate([np.full((len(even), 1), 100.0), 0.05 * even], axis=1)
    assert search.Quantisation(10, metric, radius=150.0).coarseness(stored) > 0.95


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("order", ["C", "F"])
def test_neighbours_outside_of_the_sample_count(metric: search.Metric, order: Literal["C", "F"]) -> None:
    """Each vector has one neighbour that rounding makes equal, and few of these are in the same sample."""
    single = vectors(20_000, 6)
    pairs = np.asarray(np.concatenate([single, single + 1e-6]), order=order)
    assert search.Quantisation(6, metric, radius=10.0).coarseness(pairs) > 0.95
