"""Indices answer queries with the scores of rounded vectors, exactly."""

import json
import os
import random
import threading
import tracemalloc
from pathlib import Path
from typing import Any

import keywright as kw
import numpy as np
import pytest
from keywright import search
from keywright._core import SearchIndex
from keywright.errors import (
    FormatError,
    KeywrightError,
    MismatchError,
    MissingKeyError,
    NoiseError,
    ParameterError,
    SearchError,
)
from keywright.search.index import VectorIndex
from keywright.search.quantisation import MAX_LEVELS
from tests.search.cases import METRICS, edited, exact, rounded, seal_again, vectors

STORED = vectors(300, 6)
QUERY = vectors(1, 6, seed=2)[0]


@pytest.mark.parametrize("metric", METRICS)
def test_scores_are_those_of_rounded_vectors(metric: search.Metric) -> None:
    index = search.Index.of(STORED, metric=metric)
    client = search.Client(index.directory())
    query = client.query(QUERY)
    answer = index.answer(query.data, client.keys())
    ids, scores = query.scores(answer)
    expected = rounded(client.quantisation, STORED, QUERY)
    assert np.array_equal(ids, np.arange(300))
    np.testing.assert_allclose(scores, expected, rtol=1e-12, atol=1e-12)
    scale = np.linalg.norm(QUERY) if metric == "dot" else 1
    assert np.abs(scores - exact(metric, STORED, QUERY)).max() <= client.quantisation.error * scale

    best, values = query.top(answer, 10)
    order = np.argsort(expected if metric == "euclidean" else -expected, kind="stable")[:10]
    assert np.array_equal(best, order)
    np.testing.assert_allclose(values, expected[order], rtol=1e-12)


LAYOUTS = {
    "columns": np.asfortranarray(STORED),
    "every second": np.repeat(STORED, 2, axis=0)[::2],
    "backwards": STORED[::-1].copy()[::-1],
    "part of a row": np.hstack([STORED, STORED])[:, :6],
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("metric", METRICS)
def test_the_order_in_memory_changes_no_vector(metric: search.Metric, layout: str) -> None:
    given = LAYOUTS[layout]
    assert np.array_equal(given, STORED)
    index = search.Index.of(given, metric=metric)
    client = search.Client(index.directory())
    query = client.query(QUERY)
    _, scores = query.scores(index.answer(query.data, client.keys()))
    expected = rounded(client.quantisation, STORED, QUERY)
    np.testing.assert_allclose(scores, expected, rtol=1e-12, atol=1e-12)


def test_the_engine_takes_rows_alone() -> None:
    engine = SearchIndex(search.Quantisation(6).parameters, 6, 1000)
    with pytest.raises(TypeError, match="contiguous"):
        engine.write(np.arange(2), np.asfortranarray(np.ones((2, 6), np.int16)), np.zeros(0, np.int64))


def test_extreme_scores_are_exact() -> None:
    """The same and the opposite of a stored vector: the ends of the range of every metric."""
    stored = np.array([QUERY, -QUERY, QUERY * 1e-9])
    for metric in METRICS:
        index = search.Index(search.Quantisation(6, metric, radius=float(np.linalg.norm(QUERY)) * 1.001))
        index.add([0, 1, 2], stored)
        client = search.Client(index.directory())
        for vector in (QUERY, -QUERY):
            query = client.query(vector)
            _, scores = query.scores(index.answer(query.data, client.keys()))
            expected = rounded(client.quantisation, stored, vector)
            np.testing.assert_allclose(scores, expected, rtol=1e-12, atol=1e-12)


def test_vectors_are_added_and_deleted() -> None:
    index = search.Index(search.Quantisation(2))
    index.add([7, -3, 100], [[1, 0], [0, 1], [-1, 0]])
    client = search.Client(index.directory())
    keys = client.keys()
    index.delete([-3])
    # The place of the deleted vector is used again.
    index.add([5, 6], [[0.6, 0.8], [0.8, 0.6]])
    client.update(index.directory())
    assert len(index) == len(client) == 4
    query = client.query([1, 0])
    answer = index.answer(query.data, keys)
    ids, scores = query.scores(answer)
    assert ids.tolist() == [7, 5, 100, 6]
    np.testing.assert_allclose(scores, [1, 0.6, -1, 0.8], atol=client.quantisation.error)
    assert query.top(answer, 2)[0].tolist() == [7, 6]
    assert sorted(index.ids) == [5, 6, 7, 100]

    index.delete(index.ids)
    assert len(index) == 0
    with pytest.raises(SearchError, check=lambda error: error.code == "empty"):
        index.answer(query.data, keys)
    client.update(index.directory())
    with pytest.raises(SearchError, check=lambda error: error.code == "empty"):
        client.query([1, 0])


@pytest.mark.parametrize("metric", METRICS)
def test_an_index_is_saved_and_loaded(metric: search.Metric, tmp_path: Path) -> None:
    index = search.Index.of(STORED[:50], range(100, 150), metric=metric)
    index.delete([120, 149])
    client = search.Client(index.directory())
    query = client.query(QUERY)
    keys = client.keys()
    index.save(tmp_path / "index")
    loaded = search.Index.load(tmp_path / "index")
    assert loaded.directory() == index.directory()
    assert loaded.answer(query.data, keys) == index.answer(query.data, keys)
    loaded.add([120], STORED[:1])
    with pytest.raises(kw.errors.FolderError):
        index.save(tmp_path / "index")


def test_searches_do_not_wait_for_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A saved folder is synced, which may take long."""
    index, sync, read = search.Index.of(STORED), os.fsync, list[Any]()

    def read_and_sync(handle: int) -> None:
        thread = threading.Thread(target=lambda: read.append(index.directory()), daemon=True)
        thread.start()
        thread.join()
        sync(handle)

    monkeypatch.setattr(os, "fsync", read_and_sync)
    index.save(tmp_path / "index")
    assert read


def damages(folder: Path) -> list[tuple[str, bytes]]:
    description = json.loads((folder / "index.json").read_text())
    vectors = (folder / "vectors.npy").read_bytes()
    ids = (folder / "ids.npy").read_bytes()
    return [
        ("index.json", b"{}"),
        ("index.json", json.dumps({**description, "levels": 1 << 40}).encode()),
        ("index.json", json.dumps({**description, "metric": ["dot"]}).encode()),
        ("index.json", json.dumps({**description, "index": "00"}).encode()),
        ("index.json", json.dumps({**description, "levels": 1}).encode()),
        ("vectors.npy", vectors[:-2]),
        ("vectors.npy", ids),
        ("ids.npy", vectors),
        ("ids.npy", ids[:-16] + ids[-8:] * 2),
    ]


@pytest.mark.parametrize("sealed", [False, True])
@pytest.mark.parametrize("number", range(9))
def test_a_damaged_folder_is_refused(number: int, sealed: bool, tmp_path: Path) -> None:
    """Also one whose document states the digests of the damaged files."""
    folder = tmp_path / "index"
    search.Index.of(STORED[:5]).save(folder)
    name, data = damages(folder)[number]
    (folder / name).write_bytes(data)
    if sealed and number:
        seal_again(folder)
    with pytest.raises(FormatError):
        search.Index.load(folder)


def test_one_changed_bit_of_any_file_is_refused(tmp_path: Path) -> None:
    """Of vectors, ids and the description: any bits of most are valid contents."""
    folder, chosen = tmp_path / "index", random.Random(1)
    search.Index.of(STORED).save(folder)
    search.Index.load(folder)
    for path in sorted(folder.iterdir()):
        intact = path.read_bytes()
        for _ in range(40):
            place, bit = chosen.randrange(len(intact)), 1 << chosen.randrange(8)
            path.write_bytes(intact[:place] + bytes([intact[place] ^ bit]) + intact[place + 1 :])
            with pytest.raises(FormatError) as refusal:
                search.Index.load(folder)
            if path.suffix == ".npy":
                assert refusal.value.code == "checksum"
                assert str(path) in str(refusal.value)
        path.write_bytes(intact)


@pytest.mark.parametrize(
    ("stored", "reason", "row"),
    [
        ([[1.0, 2.0, 3.0]], "shape", None),
        ([1.0, 2.0], "shape", None),
        ([[1.0, 2.0], [1.0, np.nan]], "number", 1),
        ([[1.0, 2.0], [-np.inf, 1.0]], "number", 1),
        ([["a", "b"]], "number", None),
        ([[1.0, 2.0], [0.0, 0.0]], "norm", 1),
    ],
)
def test_bad_vectors_are_refused(stored: list[list[float]], reason: str, row: int | None) -> None:
    index = search.Index(search.Quantisation(2))
    with pytest.raises(SearchError) as refusal:
        index.add(range(len(stored)), stored)
    assert (refusal.value.code, refusal.value.row) == (reason, row)
    assert len(index) == 0


@pytest.mark.parametrize("metric", ["cosine", "dot", "euclidean"])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_the_stored_vector_that_is_not_finite_is_named(metric: search.Metric, value: float) -> None:
    with pytest.raises(SearchError, match="vector 1 has the number"):
        search.Index.of([[1.0, 2.0], [value, 1.0], [3.0, 4.0]], metric=metric)


def test_a_centre_that_is_not_finite_is_named() -> None:
    with pytest.raises(SearchError, match="the centre has the number nan"):
        search.Quantisation(2, "euclidean", centre=np.array([1.0, np.nan]))


@pytest.mark.parametrize(
    ("metric", "vector", "reason"),
    [
        ("cosine", [0.0, 0.0], "norm"),
        ("dot", [0.0, 0.0], "norm"),
        ("cosine", [1.0], "shape"),
        ("dot", [[1.0, 2.0]], "shape"),
        ("euclidean", [np.nan, 1.0], "number"),
        ("cosine", [np.inf, 1.0], "number"),
        ("euclidean", [9.0, 9.0], "radius"),
    ],
)
def test_bad_queries_are_refused(metric: search.Metric, vector: list[float], reason: str) -> None:
    index = search.Index.of([[1.0, 0.0], [0.0, 1.0]], metric=metric)
    with pytest.raises(SearchError) as refusal:
        search.Client(index.directory()).query(vector)
    assert (refusal.value.code, refusal.value.row) == (reason, None)


def test_a_vector_outside_of_the_radius_is_refused() -> None:
    index = search.Index.of([[3.0, 4.0], [1.0, 0.0]], metric="dot")
    with pytest.raises(SearchError, match="vector 1 has the norm 10, above radius=5") as refusal:
        index.add([5, 6], [[3.0, 4.0], [6.0, 8.0]])
    assert refusal.value.code == "radius"
    assert len(index) == 2


@pytest.mark.parametrize("metric", ["cosine", "dot", "euclidean"])
@pytest.mark.parametrize("size", [5e-324, 1e-320, 1e-307, 1e-300, 1e-150, 1e150, 1e300, 1.7e308])
def test_numbers_of_any_size_have_right_scores_or_are_refused(metric: search.Metric, size: float) -> None:
    """Also those whose squares, norms or quotients are out of range."""
    vectors = np.array([[1, 1, 1, 1], [1, 1, 1, -1], [-1, 1, 0, 0]]) * size
    given = vectors[0] * (0.5 if metric == "euclidean" and size > 1e-323 else 1)
    try:
        index = search.Index.of(vectors, metric=metric)
        client = search.Client(index.directory())
        query = client.query(given)
    except (SearchError, ParameterError):
        assert metric != "cosine", "a cosine has no size"
        return
    scores = query.scores(index.answer(query.data, client.keys()))[1]
    stored, asked = vectors / size, given / size
    unit = {"cosine": 1.0, "dot": size * size, "euclidean": size}[metric]
    exact = np.linalg.norm(stored - asked, axis=1) if metric == "euclidean" else stored @ asked
    if metric == "cosine":
        exact = exact / np.linalg.norm(stored, axis=1) / np.linalg.norm(asked)
    error = index.quantisation.error * (np.linalg.norm(asked) * size if metric == "dot" else 1)
    assert np.abs(scores - exact * unit).max() <= error * 1.01


@pytest.mark.parametrize("levels", range(1, 17))
def test_the_fewest_levels_are_answered(levels: int) -> None:
    """Their answers are the shortest."""
    vectors = np.random.default_rng(0).normal(size=(20, 16))
    index = search.Index(search.Quantisation(16, levels=levels))
    index.add(range(20), vectors)
    client = search.Client(index.directory())
    query = client.query(vectors[3])
    scores = query.scores(index.answer(query.data, client.keys()))[1]
    cosines = vectors @ vectors[3] / np.linalg.norm(vectors, axis=1) / np.linalg.norm(vectors[3])
    assert np.abs(scores - cosines).max() <= index.quantisation.error


@pytest.mark.parametrize("dtype", ["int64", "uint64"])
def test_integers_that_double_precision_rounds_are_refused(dtype: str) -> None:
    with pytest.raises(SearchError, match=r"2\^53", check=lambda error: error.code == "number"):
        search.Index.of(np.full((2, 2), 2**53, dtype) + np.eye(2, dtype=dtype), metric="euclidean")


@pytest.mark.parametrize(
    ("ids", "match"),
    [
        ([1], "1 id given for 2 vectors"),
        ([1, 1], "id 1 occurs twice"),
        ([0, 1], "id 0 is in the index already"),
        ([1.5, 2.5], "64-bit integers"),
        (np.array([1, 1 << 63], dtype=np.uint64), "64-bit integers"),
    ],
)
def test_bad_ids_are_refused(ids: list[float], match: str) -> None:
    index = search.Index.of(np.eye(2)[:1])
    with pytest.raises(SearchError, match=match, check=lambda error: error.code == "id"):
        index.add(ids, np.eye(2))
    with pytest.raises(SearchError, match="id 9 is not in the index", check=lambda error: error.code == "id"):
        index.delete([0, 9])
    assert index.ids.tolist() == [0]


@pytest.mark.parametrize(
    "arguments",
    [
        {"dimension": 0},
        {"dimension": (1 << 13) + 1},
        {"metric": "manhattan"},
        {"levels": 0},
        {"levels": 4096},
        {"levels": True},
        {"radius": 0.0},
        {"radius": float("nan")},
        {"centre": np.zeros(2)},
        {"metric": "euclidean", "centre": np.zeros(3)},
        {"metric": "euclidean", "centre": np.array([0, np.inf])},
    ],
)
def test_bad_quantisations_are_refused(arguments: dict[str, object]) -> None:
    with pytest.raises(KeywrightError):
        search.Quantisation(**{"dimension": 2, **arguments})  # type: ignore[arg-type]


@pytest.mark.parametrize("dimension", [1, 7, 300])
@pytest.mark.parametrize("metric", METRICS)
def test_the_largest_levels_are_answered_and_more_are_refused(
    metric: search.Metric, dimension: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The engine, which decides by its own estimate, refuses the next number of levels, too."""

    def answered(levels: int) -> None:
        quantisation = search.Quantisation(dimension, metric, levels=levels, radius=100.0)
        stored, query = vectors(5, dimension), vectors(1, dimension, seed=2)[0]
        index = search.Index(quantisation)
        index.add(range(5), stored)
        client = search.Client(index.directory())
        question = client.query(query)
        _, scores = question.scores(index.answer(question.data, client.keys()))
        np.testing.assert_allclose(scores, rounded(quantisation, stored, query), rtol=1e-12, atol=1e-12)

    with pytest.raises(ParameterError, match=f"metric='{metric}' and dimension={dimension}") as refusal:
        search.Quantisation(dimension, metric, levels=MAX_LEVELS)
    largest = refusal.value.maximum
    assert isinstance(largest, int)
    answered(largest)
    with pytest.raises(ParameterError):
        answered(largest + 1)
    monkeypatch.setattr("keywright.search.quantisation.largest_levels", lambda *_, **__: MAX_LEVELS)
    with pytest.raises(NoiseError):
        answered(largest + 1)


@pytest.mark.parametrize("k", [0, 3, -1, True, 1.5])
def test_more_results_than_vectors_are_refused(k: int) -> None:
    index = search.Index.of(np.eye(2))
    client = search.Client(index.directory())
    query = client.query([1, 0])
    answer = index.answer(query.data, client.keys())
    with pytest.raises(SearchError, match="1 to 2", check=lambda error: error.code == "count"):
        query.top(answer, k)


def test_an_answer_belongs_to_a_query_an_index_and_a_revision() -> None:
    index, other = search.Index.of(np.eye(2)), search.Index.of(np.eye(2))
    client = search.Client(index.directory())
    keys = client.keys()
    query, second = client.query([1, 0]), client.query([0, 1])
    answer = index.answer(query.data, keys)

    def reason(query: search.Query, answer: bytes) -> str:
        with pytest.raises(FormatError) as refusal:
            query.top(answer, 1)
        return refusal.value.code

    assert reason(second, answer) == "query"
    assert reason(query, other.answer(query.data, keys)) == "index"
    assert reason(query, answer + answer) == "index"
    index.delete([1])
    assert reason(query, index.answer(query.data, keys)) == "revision"
    assert [reason(query, cut) for cut in (b"", answer[:40], answer[:-1], b"x" + answer)] == ["format"] * 4
    with pytest.raises(FormatError):
        query.top(answer[:-1] + bytes([answer[-1] ^ 1]), 1)


def test_keys_and_queries_of_others_are_refused() -> None:
    index = search.Index.of(np.eye(4))
    client, stranger = (search.Client(index.directory()) for _ in range(2))
    query = client.query([1, 0, 0, 0])
    with pytest.raises(MismatchError, check=lambda error: error.code == "key"):
        index.answer(query.data, stranger.keys())
    few = kw.KeyGenerator(client.secret).evaluation_keys(relinearization=False)
    with pytest.raises(MissingKeyError):
        index.answer(query.data, few)
    for data in (b"", query.data[:-1], query.data[:20], b"x" + query.data):
        with pytest.raises(FormatError):
            index.answer(data, client.keys())
    with pytest.raises(FormatError):
        index.answer(query.data, b"")


def test_a_client_is_made_again_from_its_secret() -> None:
    index = search.Index.of(STORED)
    first = search.Client(index.directory())
    keys, query = first.keys(), first.query(QUERY)
    again = search.Client(index.directory(), first.secret)
    second = again.query(QUERY)
    assert query.data != second.data
    assert np.array_equal(
        query.scores(index.answer(query.data, keys))[1], second.scores(index.answer(second.data, keys))[1]
    )


@pytest.mark.parametrize("metric", METRICS)
def test_lengths_depend_on_no_vector(metric: search.Metric) -> None:
    """The query's length is that of the index; the header before its polynomials, too."""
    index = search.Index.of(STORED, metric=metric)
    client = search.Client(index.directory())
    keys = client.keys()
    queries = [client.query(vector) for vector in (QUERY, STORED[0], STORED.mean(axis=0) + 1e-6, -QUERY)]
    assert len({len(query.data) for query in queries}) == 1
    assert len({len(index.answer(query.data, keys)) for query in queries}) == 1


def test_directories_are_read_strictly() -> None:
    index = search.Index.of(STORED, np.random.default_rng(3).permutation(300) - 150)
    index.delete(index.ids[::7])
    data = index.directory()
    assert np.array_equal(search.Client(data)._directories[0].ids, index._places.ids)
    with pytest.raises(FormatError, match="a shard occurs twice"):
        search.Client(data + data)
    for cut in (b"", data[:10], data[:-1], data + b"x", data.replace(b"cosine", b"corine")):
        with pytest.raises(FormatError):
            search.Client(cut)
    huge = data[:-8] + (1 << 62).to_bytes(8, "little")
    with pytest.raises(FormatError):
        search.Client(huge)
    other = search.Index.of(STORED, levels=100)
    with pytest.raises(FormatError, match="in another way"):
        search.Client(data).update(other.directory())


@pytest.mark.parametrize("field", ["dimension", "levels"])
@pytest.mark.parametrize("value", [-1, -(1 << 63), 1 << 63, 1 << 70, True, 1.0, "1", None])
def test_integers_of_a_directory_have_bounds(field: str, value: object) -> None:
    directory = search.Index.of(STORED).directory()
    with pytest.raises(FormatError):
        search.Client(edited(directory, None, **{field: value}))


@pytest.mark.parametrize("field", ["index", "revision"])
@pytest.mark.parametrize("value", ["", "00" * 15, "00" * 17, "x" * 32, 1, None])
def test_index_and_revision_of_a_directory_have_16_bytes(field: str, value: object) -> None:
    directory = search.Index.of(STORED).directory()
    assert len(search.Client(edited(directory, None, **{field: "00" * 16}))) == 300
    with pytest.raises(FormatError):
        search.Client(edited(directory, None, **{field: value}))


@pytest.mark.parametrize("count", [0, (1 << 26) + 1, -(1 << 26) - 1, (1 << 63) - 1, -(1 << 63)])
def test_runs_of_a_directory_have_bounds(count: int) -> None:
    with pytest.raises(FormatError, match="places"):
        search.Client(edited(search.Index.of(STORED).directory(), runs=[[0, count]]))


def test_places_that_a_directory_states_take_no_memory() -> None:
    """A directory of 230 bytes that stated 2^26 places took 1.7 gigabytes."""
    empty = search.EncryptedIndex(search.Quantisation(3, encrypted=True)).directory()
    tracemalloc.start()
    client = search.Client(edited(empty, runs=[[5, 1 << 26]]))
    (message,) = client.encrypt([-1, 1 << 40], np.eye(3)[:2])
    client.query([1, 0, 0])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * len(message) < 10 << 20


def test_a_directory_takes_a_multiple_of_its_bytes() -> None:
    """One of 256 MB, with a run for each id, took 1.6 gigabytes."""
    empty = search.Index(search.Quantisation(3)).directory()
    data = edited(
        empty, runs=np.stack([2 * np.random.default_rng(1).permutation(1 << 18), np.ones(1 << 18)], 1)
    )
    tracemalloc.start()
    client = search.Client(data)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(client) == 1 << 18
    assert peak < 3 * len(data) + (1 << 20)


def test_ids_of_runs_are_known() -> None:
    """Also of runs that wrap around, and not of deleted vectors."""
    empty = search.EncryptedIndex(search.Quantisation(3, encrypted=True)).directory()
    runs = [[(1 << 63) - 2, 4], [10, 3], [-7, 2], [20, -5]]
    directory = search.directory.read_directories(edited(empty, runs=runs))[0]
    known = [(1 << 63) - 2, (1 << 63) - 1, -(1 << 63), 1 - (1 << 63), 10, 11, 12, -7, -6]
    new = [(1 << 63) - 3, 2 - (1 << 63), 9, 13, -8, -5, 20, 24, 0]
    assert directory.new_ids(new, len(new)).tolist() == new
    assert sorted(directory.ids[directory.live]) == sorted(known)
    for name in known:
        with pytest.raises(SearchError, match=f"id {name} is in the index"):
            directory.new_ids([*new, name], len(new) + 1)


@pytest.mark.parametrize("count", [1, 8192, 8193])
@pytest.mark.parametrize("kind", ["clear", "encrypted", "thin", "thin index"])
def test_answers_are_no_longer_than_a_client_expects(kind: str, count: int) -> None:
    stored = vectors(count, 3)
    index: search.Index | search.EncryptedIndex
    if kind == "encrypted":
        index = search.EncryptedIndex(search.Quantisation(3, encrypted=True))
        client = search.Client(index.directory())
        for message in client.encrypt(range(count), stored):
            index.add(message)
        client.update(index.directory())
    else:
        index = search.Index.of(stored, thin=kind != "clear")
        client = search.Client(index.directory(), thin=kind == "thin")
    query = client.query([1, 2, 3])
    answer = index.answer(query.data, client.keys())
    most = query.answer_bytes(count)
    assert len(answer) <= most + 100
    assert most <= 12 * 8192 * -(-count // 8192)


def test_cosines_are_cosines_in_their_order() -> None:
    """Rounding gives products above 1, which are in order."""
    index = search.Index.of(STORED, levels=20)
    client = search.Client(index.directory())
    (rows, _), keys, largest = next(client.quantisation.vectors(STORED)), client.keys(), 0
    for vector in STORED[:8]:
        query = client.query(vector)
        answer = index.answer(query.data, keys)
        products = rows.astype(np.int64) @ client.quantisation.query(vector)[0]
        assert np.abs(query.scores(answer)[1]).max() <= 1
        assert query.top(answer, 1)[0][0] == products.argmax()
        largest = max(largest, products.max())
    assert largest > 20**2


@pytest.mark.parametrize("size", [1e-200, 1e160])
def test_inner_products_that_are_no_numbers_are_refused(size: float) -> None:
    index = search.Index.of(STORED * size, metric="dot")
    with pytest.raises(SearchError, match="inner products") as refusal:
        search.Client(index.directory()).query(STORED[0] * size)
    assert refusal.value.code == "norm"


@pytest.mark.parametrize("kind", VectorIndex.__subclasses__())
@pytest.mark.parametrize("given", [np.eye(3), [[1.0]], 3])
def test_an_index_is_not_made_of_vectors_by_its_constructor(kind: Any, given: object) -> None:
    with pytest.raises(TypeError, match=r"begins empty.*; Index\.of makes one of vectors"):
        kind(given)


def test_masked_vectors_are_refused() -> None:
    index = search.Index.of(STORED)
    with pytest.raises(SearchError, match="masked"):
        search.Client(index.directory()).query(np.ma.masked_array(QUERY, mask=QUERY > 0))
    with pytest.raises(SearchError, match="masked"):
        search.Index.of(np.ma.masked_array(STORED, mask=STORED > 0))


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int64])
def test_integers_of_numpy_do_not_wrap(kind: type[np.integer[Any]]) -> None:
    """The bound on errors wrapped in eight bits."""
    own, other = search.Quantisation(16, levels=100), search.Quantisation(kind(16), levels=kind(100))  # type: ignore[arg-type]
    assert (other.error, other.deviation, repr(other)) == (own.error, own.deviation, repr(own))
