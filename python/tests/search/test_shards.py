"""Shards answer like one index."""

import os
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from keywright import search
from keywright.errors import EvaluationError, FormatError, ParameterError, SearchError
from keywright.search import shards
from tests.search.cases import rounded, vectors

STORED = vectors(60, 5)
QUERY = vectors(1, 5, seed=2)[0]
QUANTISATION = search.Quantisation(5)


def parts() -> list[search.Index]:
    shards = []
    for start in (0, 20, 40):
        index = search.Index(QUANTISATION)
        index.add(range(start, start + 20), STORED[start : start + 20])
        shards.append(index)
    return [*shards, search.Index(QUANTISATION)]


def test_shards_answer_as_one_index() -> None:
    shards = search.Shards(parts())
    client = search.Client(shards.directory())
    assert len(client) == 60
    query = client.query(QUERY)
    ids, scores = query.scores(shards.answer(query.data, client.keys()))
    assert np.array_equal(ids, np.arange(60))
    np.testing.assert_allclose(scores, rounded(QUANTISATION, STORED, QUERY), rtol=1e-12)


def test_a_missing_shard_is_an_error() -> None:
    shards = parts()
    client = search.Client(search.Shards(shards).directory())
    query = client.query(QUERY)
    with pytest.raises(FormatError, match="1 of 4 shards have not answered") as refusal:
        query.top(search.Shards(shards[1:]).answer(query.data, client.keys()), 3)
    assert refusal.value.code == "index"
    with pytest.raises(SearchError, check=lambda error: error.code == "empty"):
        search.Shards(shards[3:]).answer(query.data, client.keys())
    with pytest.raises(ParameterError):
        search.Shards([])


def test_shards_round_in_one_way() -> None:
    other = search.Index.of(STORED, levels=99)
    with pytest.raises(FormatError, match="round vectors in different ways"):
        search.Client(search.Shards([*parts(), other]).directory())


@pytest.mark.parametrize(
    ("first", "second", "twice"),
    [
        ([3], [3], 3),
        ([1, 2, 3, 4], [9, 4, 7], 4),
        ([5], [3, 4, 5, 6], 5),
        ([2**63 - 1, -(2**63)], [-(2**63)], -(2**63)),
        ([2**63 - 1, -(2**63)], [-(2**63) + 1, 2**63 - 2], None),
        ([-1, 0, 1], [2, -2], None),
    ],
)
def test_an_id_belongs_to_one_vector_of_all_shards(
    first: list[int], second: list[int], twice: int | None
) -> None:
    shards = []
    for ids in (first, second):
        index = search.Index(QUANTISATION)
        index.add(ids, STORED[: len(ids)])
        shards.append(index)
    if twice is None:
        assert len(search.Client(search.Shards(shards).directory())) == len(first) + len(second)
        return
    with pytest.raises(FormatError, match=f"id {twice} occurs twice", check=lambda e: e.code == "field"):
        search.Client(search.Shards(shards).directory())
    shards[1].delete([twice])
    search.Client(search.Shards(shards).directory())


def test_a_shard_in_a_process_answers_the_same(tmp_path: Path) -> None:
    index = parts()[0]
    index.save(tmp_path / "shard")
    client = search.Client(index.directory())
    query, keys = client.query(QUERY), client.keys()
    with search.IndexProcess(tmp_path / "shard", threads=1) as process:
        shards = search.Shards([process])
        assert shards.directory() == index.directory()
        expected = index.answer(query.data, keys)
        with ThreadPoolExecutor(3) as threads:
            answers = list(threads.map(lambda _: shards.answer(query.data, keys), range(3)))
        assert answers == [expected] * 3
        with pytest.raises(FormatError):
            process.answer(b"", keys)
    with pytest.raises(FileNotFoundError):
        search.IndexProcess(tmp_path / "none")


def asked(folder: Path) -> tuple[bytes, bytes, bytes]:
    """Save an index, and return a query of it, its keys and the answer."""
    index = parts()[0]
    index.save(folder)
    client = search.Client(index.directory())
    data, keys = client.query(QUERY).data, client.keys()
    return data, keys, index.answer(data, keys)


def test_a_killed_process_of_an_index_is_replaced(tmp_path: Path) -> None:
    data, keys, expected = asked(tmp_path / "shard")
    with search.IndexProcess(tmp_path / "shard", threads=1) as process:
        shards = search.Shards([process])
        for ask in (process.answer, shards.answer):
            (number,) = process._process._processes
            os.kill(number, signal.SIGKILL)
            with pytest.raises(EvaluationError, match="has ended"):
                ask(data, keys)
            assert ask(data, keys) == expected
    with pytest.raises(RuntimeError):
        process.directory()


def test_a_call_waits_for_its_turn_before_its_limit_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The limit of a call that waited behind others ended a process that was at work, and all their calls."""
    parts()[0].save(tmp_path / "shard")
    result, begun = shards._result, list[int]()

    def alone(*arguments: Any) -> object:
        begun.append(1)
        assert len(begun) == 1
        try:
            return result(*arguments)
        finally:
            begun.pop()

    with search.IndexProcess(tmp_path / "shard", threads=1) as process:
        monkeypatch.setattr(shards, "_result", alone)
        with ThreadPoolExecutor(8) as threads:
            assert len(set(threads.map(lambda _: process.directory(), range(40)))) == 1
        monkeypatch.setattr(process, "_maker", 0)
        with pytest.raises(EvaluationError, match="make an IndexProcess"):
            process.directory()
        monkeypatch.undo()


def test_a_stopped_process_of_an_index_is_replaced(tmp_path: Path) -> None:
    """It kept its caller, and the one that closed it, for ever; also with more bytes than its pipe takes."""
    data, keys, expected = asked(tmp_path / "shard")
    with search.IndexProcess(tmp_path / "shard", threads=1) as process:
        assert process.answer(data, keys) == expected
        (number,) = process._process._processes
        process._limit = 0.5
        os.kill(number, signal.SIGSTOP)
        with pytest.raises(EvaluationError, match="no answer within"):
            process.answer(data, keys)
        process._limit = 600.0
        assert process.answer(data, keys) == expected
        (number,) = process._process._processes
        process._limit = 0.5
        os.kill(number, signal.SIGSTOP)
