"""Shards of a search index on a real Ray cluster, started here: in actors, and on replicas of a service."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from keywright import search
from keywright.client import RemoteSearch
from keywright.errors import FormatError
from keywright.serve import ServedIndex, Service
from tests.search.cases import rounded, vectors
from tests.serve.cluster.conftest import start
from tests.serve.network import listening

if TYPE_CHECKING:
    from keywright.serve.cluster import RayWorkers

pytestmark = [
    pytest.mark.skipif(find_spec("ray") is None, reason="needs Ray: pip install 'keywright[cluster]'"),
    pytest.mark.filterwarnings("ignore"),  # warnings of Ray itself, also during its import
]

STORED, QUERY = vectors(40, 5), vectors(1, 5, seed=2)[0]
QUANTISATION = search.Quantisation(5)
SCORES = rounded(QUANTISATION, STORED, QUERY)


@pytest.fixture(scope="module")
def workers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RayWorkers]:
    from keywright.serve.cluster import Replicas

    workers = start(tmp_path_factory.mktemp("name"), Replicas(1, 4, 1))
    yield workers
    workers.close()


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folders = []
    for first in (0, 20):
        index = search.Index(QUANTISATION)
        index.add(range(first, first + 20), STORED[first : first + 20])
        folders.append(tmp_path_factory.mktemp("index") / str(first))
        index.save(folders[-1])
    return folders


def test_shards_in_actors_answer_as_one(workers: RayWorkers, folders: list[Path]) -> None:
    from keywright.serve.cluster import IndexActor

    with IndexActor(folders[0]) as first, IndexActor(folders[1]) as second:
        shards = search.Shards([first, second])
        client = search.Client(shards.directory())
        query, keys = client.query(QUERY), client.keys()
        with ThreadPoolExecutor(3) as threads:
            for answer in threads.map(lambda _: shards.answer(query.data, keys), range(3)):
                ids, scores = query.scores(answer)
                assert np.array_equal(ids, np.arange(40))
                np.testing.assert_allclose(scores, SCORES, rtol=1e-12)
        with pytest.raises(FormatError):
            first.answer(b"", keys)
    with pytest.raises(FileNotFoundError):
        IndexActor(folders[0] / "none")


def test_shards_on_the_replicas_of_a_service(
    workers: RayWorkers, folders: list[Path], tmp_path: Path
) -> None:
    shards = [ServedIndex(folder) for folder in folders]
    service = Service(shards, tmp_path, workers=workers)
    service.prepare()
    try:
        with (
            listening(service) as server,
            RemoteSearch(server.url, [shard.hash for shard in shards]) as remote,
        ):
            ids, scores = remote.scores(QUERY)
            assert np.array_equal(ids, np.arange(40))
            np.testing.assert_allclose(scores, SCORES, rtol=1e-12)
    finally:
        service.close()
