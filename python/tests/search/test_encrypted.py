"""Encrypted vectors have the scores of vectors in the clear."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from keywright import search
from keywright.errors import FormatError, MismatchError, MissingKeyError, ParameterError, SearchError
from keywright.search.quantisation import MAX_LEVELS
from tests.search.cases import METRICS, rounded, seal_again, vectors

BLOCK = 8192
STORED = vectors(BLOCK + 5, 3)
QUERY = vectors(1, 3, seed=2)[0]


def index_of(metric: search.Metric = "cosine") -> tuple[search.EncryptedIndex, search.Client]:
    quantisation = search.Quantisation(3, metric, levels=1000, radius=20, encrypted=True)
    index = search.EncryptedIndex(quantisation)
    return index, search.Client(index.directory())


def fill(index: search.EncryptedIndex, client: search.Client, first: int, end: int) -> None:
    for message in client.encrypt(range(first, end), STORED[first:end]):
        index.add(message)
    client.update(index.directory())


@pytest.fixture(scope="module")
def small() -> tuple[search.EncryptedIndex, search.Client]:
    index, client = index_of()
    fill(index, client, 0, 4)
    return index, client


@pytest.mark.parametrize("metric", METRICS)
def test_scores_are_those_of_rounded_vectors(metric: search.Metric, tmp_path: Path) -> None:
    """In two blocks, of which the first is filled in two steps; saved, loaded, as a shard."""
    index, client = index_of(metric)
    fill(index, client, 0, 100)
    fill(index, client, 100, len(STORED))
    index.delete([3, BLOCK + 1])
    client.update(index.directory())
    assert len(index) == len(client) == len(STORED) - 2
    keys, query = client.keys(), client.query(QUERY)
    answer = index.answer(query.data, keys)
    ids, scores = query.scores(answer)
    left = np.delete(np.arange(len(STORED)), [3, BLOCK + 1])
    assert np.array_equal(ids, left)
    expected = rounded(client.quantisation, STORED[left], QUERY)
    np.testing.assert_allclose(scores, expected, rtol=1e-12, atol=1e-12)

    index.save(tmp_path / "index")
    loaded = search.EncryptedIndex.load(tmp_path / "index")
    assert loaded.directory() == index.directory()
    assert search.Shards([loaded]).answer(query.data, keys) == answer
    if metric == "cosine":
        with search.IndexProcess(tmp_path / "index", threads=1) as process:
            assert process.answer(query.data, keys) == answer


@pytest.mark.parametrize("metric", METRICS)
def test_the_largest_levels_are_answered(metric: search.Metric) -> None:
    quantisation = search.Quantisation(3, metric, levels=MAX_LEVELS, radius=20, encrypted=True)
    index = search.EncryptedIndex(quantisation)
    client = search.Client(index.directory())
    fill(index, client, 0, 4)
    query = client.query(QUERY)
    _, scores = query.scores(index.answer(query.data, client.keys()))
    np.testing.assert_allclose(scores, rounded(quantisation, STORED[:4], QUERY), rtol=1e-12, atol=1e-12)
    with pytest.raises(ParameterError):
        search.Quantisation(3, metric, levels=MAX_LEVELS + 1, encrypted=True)


def test_a_message_is_for_one_revision_of_one_index(
    small: tuple[search.EncryptedIndex, search.Client],
) -> None:
    index, client = small

    def reason(data: bytes) -> str:
        with pytest.raises(FormatError) as refusal:
            index.add(data)
        return refusal.value.code

    (message,) = client.encrypt([4], STORED[:1])
    assert reason(b"") == reason(b"x" + message) == "foreign"
    changed = message[:40] + bytes([message[40] ^ 1]) + message[41:]
    for damaged in (message[:60], message[:-1], message + b"x" * 4, changed):
        assert reason(damaged) == "checksum"
    other, stranger = index_of()
    assert reason(next(stranger.encrypt([4], STORED[:1]))) == "index"
    thief = search.Client(index.directory())
    with pytest.raises(MismatchError, check=lambda error: error.code == "key"):
        index.add(next(thief.encrypt([4], STORED[:1])))
    damaged = message[:-5] + bytes([message[-5] ^ 1]) + message[-4:]
    with pytest.raises(FormatError):
        index.add(damaged)
    assert len(index) == 4
    fewer = replace(client._directories[0], runs=np.array([[0, 3]])).to_bytes()
    assert reason(next(search.Client(fewer, client.secret).encrypt([4], STORED[:1]))) == "revision"
    before = index.directory()
    index.delete([0])
    assert reason(message) == "revision"
    index._places.live[0], index._places.revision = True, client._directories[0].revision
    assert index.directory() == before
    assert len(other) == 0


def test_bad_input_is_refused(small: tuple[search.EncryptedIndex, search.Client]) -> None:
    index, client = small
    cases: list[tuple[list[int], Any, str]] = [
        ([4], [[1.0, 2.0]], "shape"),
        ([4], [[0.0, 0.0, 0.0]], "norm"),
        ([4], [[1.0, np.nan, 0.0]], "number"),
        ([3], STORED[:1], "id"),
        ([4, 4], STORED[:2], "id"),
        ([4, 5], STORED[:1], "id"),
    ]
    for ids, stored, reason in cases:
        with pytest.raises(SearchError) as refusal:
            client.encrypt(ids, stored)
        assert refusal.value.code == reason
    assert list(client.encrypt([], np.zeros((0, 3)))) == []
    with pytest.raises(SearchError, check=lambda error: error.code == "id"):
        index.delete([9])
    query = client.query(QUERY)
    keys = client.keys()
    with pytest.raises(SearchError, check=lambda error: error.code == "count"):
        query.top(index.answer(query.data, keys), 5)
    with pytest.raises(MismatchError, check=lambda error: error.code == "key"):
        index.answer(query.data, search.Client(index.directory()).keys())

    empty, new = index_of()
    with pytest.raises(SearchError, check=lambda error: error.code == "empty"):
        new.query(QUERY)
    with pytest.raises(SearchError, check=lambda error: error.code == "empty"):
        empty.answer(query.data, keys)


def test_indices_and_quantisations_belong_together() -> None:
    for kind, encrypted in ((search.Index, True), (search.EncryptedIndex, False)):
        with pytest.raises(ParameterError, match="encrypted"):
            kind(search.Quantisation(3, encrypted=encrypted))
    clear = search.Index.of(STORED[:2])
    client = search.Client(clear.directory())
    with pytest.raises(ParameterError, match="vectors in the clear"):
        client.encrypt([5], STORED[:1])
    shards = search.Shards([index_of()[0], index_of()[0]])
    both = search.Client(search.Shards([index_of()[0]] * 1).directory())
    assert list(both.encrypt([], np.zeros((0, 3)))) == []
    with pytest.raises(FormatError, match="a shard occurs twice"):
        search.Client(search.Shards([shards.shards[0]] * 2).directory())
    with pytest.raises(ParameterError, match="several shards"):
        search.Client(shards.directory()).encrypt([5], STORED[:1])


def test_a_query_needs_the_relinearization_key(
    small: tuple[search.EncryptedIndex, search.Client],
) -> None:
    index, client = small
    clear = search.Index.of(STORED[:2])
    with pytest.raises((MissingKeyError, MismatchError, FormatError)):
        index.answer(client.query(QUERY).data, search.Client(clear.directory()).keys())


def test_a_damaged_folder_is_refused(
    small: tuple[search.EncryptedIndex, search.Client], tmp_path: Path
) -> None:
    folder = tmp_path / "index"
    small[0].save(folder)
    block = (folder / "block-0.bin").read_bytes()
    search.EncryptedIndex.load(folder)
    for data in (
        block[:-1],
        block[: len(block) // 3],
        b"",
        block[:99] + bytes([block[99] ^ 1]) + block[100:],
    ):
        (folder / "block-0.bin").write_bytes(data)
        with pytest.raises(FormatError):
            search.EncryptedIndex.load(folder)
        seal_again(folder)
        with pytest.raises(FormatError):
            search.EncryptedIndex.load(folder)
    os.truncate(folder / "block-0.bin", 1 << 40)
    with pytest.raises(FormatError):
        search.EncryptedIndex.load(folder)
    (folder / "block-0.bin").unlink()
    with pytest.raises(FileNotFoundError):
        search.EncryptedIndex.load(folder)
    (folder / "block-0.bin").mkdir()
    with pytest.raises(FormatError):
        search.EncryptedIndex.load(folder)


def test_lengths_depend_on_no_vector(small: tuple[search.EncryptedIndex, search.Client]) -> None:
    index, client = small
    lengths = {len(next(client.encrypt([4], [vector]))) for vector in (QUERY, -QUERY, [1e-9, 0, 0])}
    assert len(lengths) == 1
    keys = client.keys()
    queries = [client.query(vector).data for vector in (QUERY, [1, 0, 0])]
    assert len({len(query) for query in queries}) == 1
    assert len({len(index.answer(query, keys)) for query in queries}) == 1
