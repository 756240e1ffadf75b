"""Ctrl-C within a change of an index."""

import contextlib
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from keywright import search
from tests.search.cases import rounded, vectors

STORED, QUERY = vectors(11, 5), vectors(1, 5, seed=2)[0]


class Interrupted:
    """An engine that is interrupted when it has written."""

    def __init__(self, engine: Any) -> None:
        self._engine = engine

    def __getattr__(self, name: str) -> Any:
        if name not in ("write", "append"):
            return getattr(self._engine, name)

        def change(*arguments: Any) -> None:
            getattr(self._engine, name)(*arguments)
            raise KeyboardInterrupt

        return change


@pytest.mark.parametrize("encrypted", [False, True])
def test_an_interrupted_change_leaves_the_other_vectors(encrypted: bool, tmp_path: Path) -> None:
    """Ctrl-C in a long call of `add` left an index that nobody could ask, and in `delete` wrong scores."""
    index: Any = search.Index.of(STORED[:9])
    if encrypted:
        index = search.EncryptedIndex(search.Quantisation(STORED.shape[1], encrypted=True))
    client = search.Client(index.directory())
    added: tuple[Any, ...] = ([70, 71], STORED[9:11])
    if encrypted:
        index.add(next(client.encrypt(range(9), STORED[:9])))
        client.update(index.directory())
        added = (next(client.encrypt(*added)),)
    ids: Any = None
    for change in (partial(index.add, *added), partial(index.delete, [0, 1])):
        engine, index._engine = index._engine, Interrupted(index._engine)
        with contextlib.suppress(KeyboardInterrupt):
            change()
        index._engine = engine
        client.update(index.directory())
        query = client.query(QUERY)
        ids, scores = query.scores(index.answer(query.data, client.keys()))
        np.testing.assert_allclose(scores, rounded(index.quantisation, STORED[ids], QUERY), rtol=1e-12)
    assert ids.tolist() == list(range(2, 9))
    if not encrypted:
        index._engine.write(np.arange(2), np.ones((2, 5), np.int16), np.zeros(0, np.int64))
        index.save(tmp_path / "index")
        assert not np.load(tmp_path / "index" / "vectors.npy")[:2].any()
