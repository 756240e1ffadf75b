"""A search index on a server answers like the same index here."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest
from keywright import search, serve, thin
from keywright.client import RemoteModel, RemoteSearch
from keywright.errors import (
    EvaluationError,
    FormatError,
    InvalidObjectError,
    InvalidReplyError,
    LimitError,
    OtherModelError,
    OutOfMemoryError,
    RetiredError,
    SearchError,
)
from keywright.model.served import framing
from keywright.serve import ServedIndex, Server, Service
from keywright.serve.tenants.quotas import Quota, Quotas
from tests.search.cases import rounded, vectors
from tests.serve.network import WORKERS, listening

STORED, QUERY = vectors(40, 5), vectors(1, 5, seed=2)[0]
QUANTISATION = search.Quantisation(5)


def saved(folder: Path, first: int = 0, end: int = 20) -> ServedIndex:
    index = search.Index(QUANTISATION)
    index.add(range(first, end), STORED[first:end])
    index.save(folder)
    return ServedIndex(folder)


@pytest.fixture(scope="module")
def owner(tmp_path_factory: pytest.TempPathFactory) -> tuple[ServedIndex, search.Client]:
    """An encrypted index, and the client that filled it."""
    index = search.EncryptedIndex(search.Quantisation(5, "euclidean", radius=9, encrypted=True))
    client = search.Client(index.directory())
    for message in client.encrypt(range(40), STORED):
        index.add(message)
    folder = tmp_path_factory.mktemp("encrypted") / "private"
    index.save(folder)
    return ServedIndex(folder), client


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> list[ServedIndex]:
    folder = tmp_path_factory.mktemp("shards")
    return [saved(folder / "first"), saved(folder / "second", 20, 40)]


@pytest.fixture(scope="module")
def server(
    shards: list[ServedIndex],
    owner: tuple[ServedIndex, search.Client],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Server]:
    service = Service([*shards, owner[0]], tmp_path_factory.mktemp("state"), workers=WORKERS)
    with listening(service) as server:
        yield server
    service.close()


def test_scores_are_those_of_rounded_vectors(server: Server, shards: list[ServedIndex]) -> None:
    hashes = [shard.hash for shard in shards]
    with RemoteSearch(server.url, hashes) as remote:
        assert len(remote) == 40
        ids, scores = remote.scores(QUERY)
        assert np.array_equal(ids, np.arange(40))
        np.testing.assert_allclose(scores, rounded(QUANTISATION, STORED, QUERY), rtol=1e-12)
        best, _ = remote.top(QUERY, 3)
        assert best.tolist() == np.argsort(-scores, kind="stable")[:3].tolist()
        # One key set serves all shards.
        keys = remote._identifier
        assert remote.ask("GET", f"/v1/keys/{keys}/seen")["secret_keys"] == 0
        # The server has lost the keys.
        remote.ask("DELETE", f"/v1/keys/{keys}")
        assert remote.top(QUERY, 1)[0][0] == best[0]
        assert remote._identifier != keys
        for _ in range(3):
            remote.ask("DELETE", f"/v1/keys/{remote._identifier}")
            assert remote.top(QUERY, 1)[0][0] == best[0]
    with RemoteSearch(server.url) as remote:
        assert len(remote) == 20


def test_threads_query_vectors_of_their_owner(
    server: Server, owner: tuple[ServedIndex, search.Client]
) -> None:
    served, client = owner
    with RemoteSearch(server.url, served.hash, secret=client.secret) as remote:
        expected = rounded(served.quantisation, STORED, QUERY)
        with ThreadPoolExecutor(2) as threads:
            for ids, distances in threads.map(remote.scores, [QUERY, QUERY]):
                np.testing.assert_allclose(distances[np.argsort(ids)], expected, rtol=1e-12)
    with (
        RemoteSearch(server.url, served.hash) as thief,
        pytest.raises(EvaluationError, match="secret"),
    ):
        thief.top(QUERY, 1)


def test_thin_clients_and_others_ask_one_index(tmp_path: Path) -> None:
    """By the same keys: those of an index with one prime."""
    index = search.Index.of(STORED, thin=True)
    index.save(tmp_path / "index")
    served = ServedIndex(tmp_path / "index")
    (tmp_path / "state").mkdir()
    service = Service(served, tmp_path / "state", workers=WORKERS)
    expected = rounded(index.quantisation, STORED, QUERY)
    with listening(service) as server:
        for one_prime in (True, False):
            with RemoteSearch(server.url, thin=one_prime) as remote:
                np.testing.assert_allclose(remote.scores(QUERY)[1], expected, rtol=1e-12)
                path = f"/v1/keys/{remote._identifier}/jobs?model={served.hash}&wait=5"
                client = thin.Client.from_secret(remote.client.secret, index.quantisation.client_parameters)
                with pytest.raises(InvalidObjectError):
                    remote.request("POST", path, framing.join([client.encrypt([1])]))
    service.close()


def test_bad_input_is_refused_before_keys(server: Server, shards: list[ServedIndex], tmp_path: Path) -> None:
    remote = RemoteSearch(server.url)
    for vector, k, reason in [
        (QUERY[:4], 1, "shape"),
        (np.zeros(5), 1, "norm"),
        (QUERY * np.nan, 1, "number"),
        (QUERY, 21, "count"),
        (QUERY, 0, "count"),
    ]:
        with pytest.raises(SearchError) as refusal:
            remote.top(vector, k)
        assert refusal.value.code == reason
    assert remote._identifier is None
    with pytest.raises(OtherModelError):
        RemoteSearch(server.url, "0" * 64)
    with pytest.raises(FormatError):
        RemoteModel(server.url)
    remote.upload_keys()
    path = f"/v1/keys/{remote._identifier}/jobs?model={shards[0].hash}&wait=5"
    for data in (b"x", shards[0].encoded_parameters):
        with pytest.raises(InvalidObjectError):
            remote.request("POST", path, framing.join([data]))
    remote.close()

    search.Index(QUANTISATION).save(tmp_path / "empty")
    with pytest.raises(SearchError, check=lambda error: error.code == "empty"):
        ServedIndex(tmp_path / "empty")
    with pytest.raises(OutOfMemoryError):
        shards[0].plan_service(1000, 900)
    (tmp_path / "empty" / "index.json").write_text("{}")
    with pytest.raises(FormatError):
        ServedIndex(tmp_path / "empty")


def test_a_changed_index_takes_the_same_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where its directory has come, and an interrupt ended the call."""

    def interrupted(client: search.Client, directory: bytes) -> None:
        update(client, directory)
        raise KeyboardInterrupt

    update = search.Client.update
    before = saved(tmp_path / "before")
    index = search.Index.load(before.folder)
    index.delete([0])
    index.save(tmp_path / "after")
    after = ServedIndex(tmp_path / "after", before.name)
    with serve.serve(before, tmp_path / "state", workers=WORKERS) as server:
        remote = RemoteSearch(server.url)
        remote.upload_keys()
        remote_port = urlsplit(server.url).port
    with serve.serve(after, tmp_path / "state", workers=WORKERS, port=remote_port or 0):
        with pytest.raises(RetiredError):
            remote.top(QUERY, 1)
        with monkeypatch.context() as patch:
            patch.setattr(search.Client, "update", interrupted)
            with pytest.raises(KeyboardInterrupt):
                remote.refresh()
        assert 0 not in remote.scores(QUERY)[0]
        remote.refresh()
        assert len(remote) == 19
        keys = remote._identifier
        assert 0 not in remote.scores(QUERY)[0]
        assert remote._identifier == keys
        remote.close()


def test_a_worker_refuses_changed_vectors(tmp_path: Path) -> None:
    """The directory, by whose hash clients name an index, has none of them."""
    served = saved(tmp_path / "index")
    served.runner(None, 0)
    path = served.folder / "vectors.npy"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    with pytest.raises(FormatError, match=r"vectors\.npy is damaged", check=lambda e: e.code == "checksum"):
        ServedIndex(served.folder).runner(None, 0)


@pytest.mark.parametrize("thin", [False, True])
def test_an_answer_has_no_more_bytes_than_the_places_need(
    thin: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A directory of a few bytes states any number of places."""
    search.Index.of(STORED, thin=thin).save(tmp_path / "index")
    (tmp_path / "state").mkdir()
    service = Service(ServedIndex(tmp_path / "index"), tmp_path / "state", workers=WORKERS)
    with listening(service) as server, RemoteSearch(server.url, thin=thin) as remote:
        limits: list[int] = []
        evaluate = remote.evaluate

        def hostile(path: str, message: bytes, limit: int, *rest: Any, model: str) -> bytes:
            limits.append(limit)
            # What the query alone would announce.
            if len(limits) == 1:
                return evaluate(path, message, limit, *rest, model=model)
            return framing.join([bytes(limit)])

        monkeypatch.setattr(remote, "evaluate", hostile)
        remote.top(QUERY, 1)
        assert limits[0] <= 12 * 8192
        with pytest.raises(InvalidReplyError):
            remote.top(QUERY, 1)
        monkeypatch.setattr(search.Query, "answer_bytes", lambda *_: 1000)
        monkeypatch.setattr(remote, "evaluate", evaluate)
        with pytest.raises(InvalidReplyError, match="at most 1004 are expected"):
            remote.top(QUERY, 1)
    service.close()


def test_queries_count_against_quotas(shards: list[ServedIndex], tmp_path: Path) -> None:
    service = Service(shards[0], tmp_path, workers=WORKERS, quotas=Quotas(Quota(bytes=1000)))
    with listening(service) as server, RemoteSearch(server.url) as remote:
        with pytest.raises(LimitError, check=lambda error: error.code == "quota_bytes"):
            remote.upload_keys()
        service._usage.quotas = Quotas(Quota(seconds=1e-6))
        remote.top(QUERY, 1)
        with pytest.raises(LimitError, check=lambda error: error.code == "quota_seconds"):
            remote.top(QUERY, 1)
    service.close()
