"""Two histories of one index are never taken for each other: a server loads an old folder after a crash, and
clients know what it has forgotten."""

from itertools import product
from pathlib import Path

import numpy as np
import pytest
from keywright import search
from keywright.errors import FormatError
from tests.search.cases import rounded, vectors

STORED = vectors(9, 3)
HISTORIES: list[list[int]] = [[], [5], [6], [-1], [-1, 5], [-1, 6], [5, -1], [5, 6], [6, 5]]
"""Ids that are added, or negative deleted, after the folder was saved."""


def change(index: search.Index | search.EncryptedIndex, owner: search.Client, number: int) -> None:
    if number < 0:
        index.delete([-number])
    elif isinstance(index, search.Index):
        index.add([number], STORED[[number]])
    else:
        for message in search.Client(index.directory(), owner.secret).encrypt([number], STORED[[number]]):
            index.add(message)


@pytest.fixture(scope="module", params=[search.Index, search.EncryptedIndex])
def states(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[search.Client, list[Path]]:
    """The owner, and the folder of each history, of which all have begun with the first."""
    folder, kind = tmp_path_factory.mktemp("states"), request.param
    index = kind(search.Quantisation(3, encrypted=kind is search.EncryptedIndex))
    owner = search.Client(index.directory())
    for number in range(5):
        change(index, owner, number)
    index.save(folder / "base")
    folders = [folder / str(number) for number in range(len(HISTORIES))]
    for changes, path in zip(HISTORIES, folders, strict=True):
        index = kind.load(folder / "base")
        for number in changes:
            change(index, owner, number)
        index.save(path)
    return owner, folders


def test_a_client_of_another_history_gets_no_scores(states: tuple[search.Client, list[Path]]) -> None:
    owner, folders = states
    indices, keys = [search.shards.load_index(folder) for folder in folders], owner.keys()
    for known, asked in product(indices, indices):
        query = search.Client(known.directory(), owner.secret).query(STORED[8])
        answer = asked.answer(query.data, keys)
        if known is asked:
            ids, scores = query.scores(answer)
            np.testing.assert_allclose(
                scores, rounded(known.quantisation, STORED[ids], STORED[8]), atol=1e-12
            )
        else:
            with pytest.raises(FormatError, check=lambda error: error.code == "revision"):
                query.scores(answer)


@pytest.mark.parametrize("states", [search.EncryptedIndex], indirect=True)
def test_vectors_encrypted_for_another_history_are_refused(states: tuple[search.Client, list[Path]]) -> None:
    owner, folders = states
    keys = owner.keys()
    for known, folder in product(folders, folders):
        client = search.Client(search.EncryptedIndex.load(known).directory(), owner.secret)
        (message,) = client.encrypt([8], STORED[[8]])
        index = search.EncryptedIndex.load(folder)
        if known == folder:
            index.add(message)
            client.update(index.directory())
            query = client.query(STORED[8])
            ids, scores = query.scores(index.answer(query.data, keys))
            np.testing.assert_allclose(
                scores, rounded(client.quantisation, STORED[ids], STORED[8]), atol=1e-12
            )
        else:
            before = index.directory()
            with pytest.raises(FormatError, match="restored", check=lambda error: error.code == "revision"):
                index.add(message)
            assert index.directory() == before
