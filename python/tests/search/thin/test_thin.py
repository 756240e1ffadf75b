"""Thin clients, which compute with one prime, ask an index in the clear."""

import base64
import io
from pathlib import Path

import keywright as kw
import numpy as np
import pytest
from keywright import search, thin
from keywright.errors import (
    FormatError,
    MismatchError,
    MissingKeyError,
    NoiseError,
    ParameterError,
    SearchError,
)
from keywright.search.client import BLOCK
from keywright.search.messages import ANSWER, query_ciphertext, query_to_bytes, read_answer
from keywright.search.quantisation import MAX_LEVELS
from tests.search.cases import METRICS, edited, rounded, thin_fields, vectors

STORED = vectors(300, 6)
QUERY_VECTOR = vectors(1, 6, seed=2)[0]


def thin_client(index: search.Index) -> thin.Client:
    """A thin client with a secret of its own, that knows the directory alone."""
    return thin.Client(thin.Parameters.from_bytes(thin_fields(index.directory())["client"]))


@pytest.mark.parametrize("metric", METRICS)
def test_scores_are_those_of_rounded_vectors_and_of_other_clients(metric: search.Metric) -> None:
    index = search.Index.of(STORED, metric=metric, thin=True)
    client = search.Client(index.directory(), thin=True)
    query = client.query(QUERY_VECTOR)
    answer = index.answer(query.data, client.keys())
    ids, scores = query.scores(answer)
    expected = rounded(client.quantisation, STORED, QUERY_VECTOR)
    assert np.array_equal(ids, np.arange(300))
    np.testing.assert_allclose(scores, expected, rtol=1e-12, atol=1e-12)

    other = search.Client(index.directory())
    question = other.query(QUERY_VECTOR)
    full = index.answer(question.data, other.keys())
    assert np.array_equal(question.scores(full)[1], scores)
    for best, others in zip(query.top(answer, 10), question.top(full, 10), strict=True):
        assert np.array_equal(best, others)


def test_every_block_and_shard_is_answered(tmp_path: Path) -> None:
    """The first shard has two blocks, of which the second has 3 places and a deleted vector."""
    quantisation = search.Quantisation(6, "euclidean", radius=10.0, thin=True)
    parts = [search.Index(quantisation) for _ in range(2)]
    stored = vectors(BLOCK + 3 + 20, 6)
    parts[0].add(range(BLOCK + 3), stored[: BLOCK + 3])
    parts[1].add(range(BLOCK + 3, len(stored)), stored[BLOCK + 3 :])
    parts[0].delete([BLOCK + 1])
    parts[0].save(tmp_path / "index")
    shards = search.Shards([search.Index.load(tmp_path / "index"), parts[1]])
    client = search.Client(shards.directory(), thin=True)
    query = client.query(QUERY_VECTOR)
    ids, scores = query.scores(shards.answer(query.data, client.keys()))
    expected = rounded(quantisation, stored, QUERY_VECTOR)
    assert np.array_equal(ids, np.delete(np.arange(len(stored)), BLOCK + 1))
    np.testing.assert_allclose(scores, expected[ids], rtol=1e-12, atol=1e-12)


def test_both_sides_require_128_bits() -> None:
    """Of the ring with the prime of the keys, which each of them checks."""
    index = search.Index.of(STORED, thin=True)
    parameters, client = index.parameters, thin_client(index)
    assert not parameters.insecure
    assert parameters.log_qp <= kw._core.maximum_log_qp(parameters.log_n)
    assert [client.parameters.modulus] == parameters.q
    specs = index.quantisation.key_specs
    assert all(spec.parameters.log_qp == parameters.log_qp for spec in specs)


@pytest.mark.parametrize("dimension", [2, 300, 1024])
@pytest.mark.parametrize("metric", METRICS)
def test_the_largest_levels_are_answered_and_more_are_refused(
    metric: search.Metric, dimension: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answered(levels: int) -> None:
        quantisation = search.Quantisation(dimension, metric, levels, radius=100.0, thin=True)
        stored, vector = vectors(5, dimension), vectors(1, dimension, seed=2)[0]
        index = search.Index(quantisation)
        index.add(range(5), stored)
        client = search.Client(index.directory(), thin=True)
        query = client.query(vector)
        _, scores = query.scores(index.answer(query.data, client.keys()))
        np.testing.assert_allclose(scores, rounded(quantisation, stored, vector), rtol=1e-12, atol=1e-12)

    for levels in (1, 2, 3):
        answered(levels)
    try:
        search.Quantisation(dimension, metric, MAX_LEVELS, thin=True)
    except ParameterError as refusal:
        largest = refusal.maximum
    else:
        return answered(MAX_LEVELS)
    assert isinstance(largest, int)
    answered(largest)
    monkeypatch.setattr("keywright.search.quantisation.largest_levels", lambda *_, **__: MAX_LEVELS)
    with pytest.raises(NoiseError):
        answered(largest + 1)
    return None


def test_a_client_that_makes_its_own_keys_knows_the_directory_alone() -> None:
    """As clients in other languages do: their keys are those of the list that the directory states."""
    index = search.Index.of(STORED, thin=True)
    stated, owner = thin_fields(index.directory()), thin_client(index)
    parameters = kw.Parameters.from_bytes(stated["parameters"])
    stream = owner.key_stream(kw.keys.read_set_head(stated["key_set"], parameters), owner.session())
    keys, sent = kw.EvaluationKeys(index.parameters), io.BytesIO()
    while stream.write_next(sent.write):
        keys.add(kw.keys.SwitchingKey.from_bytes(sent.getvalue(), index.parameters))
        sent = io.BytesIO()
    integers, factor = index.quantisation.query(QUERY_VECTOR)
    question = query_to_bytes(bytes(16), owner.encrypt(integers, dropped=0))
    (part,) = read_answer(index.answer(question, keys))
    scores = index.quantisation.scores(owner.decrypt(part.scores, len(STORED)), factor)
    expected = rounded(index.quantisation, STORED, QUERY_VECTOR)
    np.testing.assert_allclose(scores, expected, rtol=1e-12, atol=1e-12)


def test_a_directory_states_no_other_parameters_for_thin_clients() -> None:
    """Neither those of another index, nor any with a bit changed."""
    directory = search.Index.of(STORED, thin=True).directory()
    other = thin_fields(search.Index.of(STORED, levels=200, thin=True).directory())["client"]
    fields = thin_fields(directory)
    assert len(other) == len(fields["client"])
    changed = {name: bytes([*data[:-1], data[-1] ^ 1]) for name, data in fields.items()}
    for name, data in [*changed.items(), ("client", other)]:
        assert data != fields[name]
        with pytest.raises(FormatError, match="thin clients"):
            search.Client(edited(directory, **{name: base64.b64encode(data).decode()}))


def test_what_is_sent_has_the_same_length_for_every_vector() -> None:
    index = search.Index.of(STORED, thin=True)
    client = search.Client(index.directory(), thin=True)
    queries = [client.query(vector) for vector in (QUERY_VECTOR, -STORED[0], np.eye(6)[0])]
    assert len({len(query.data) for query in queries}) == 1
    assert len(queries[0].data) < 62_000
    assert len(client.keys()) < 400_000


def test_a_public_key_encrypts_a_query() -> None:
    """A camera has no secret: it encrypts for the owner, who reads the scores."""
    index = search.Index.of(STORED, thin=True)
    client = search.Client(index.directory(), thin=True)
    owner = thin.Client.from_secret(client.secret, index.quantisation.client_parameters)
    camera = thin.Encryptor(owner.public_key(), owner.parameters)
    query = client.query(QUERY_VECTOR)
    integers, _ = index.quantisation.query(QUERY_VECTOR)
    sent = query_to_bytes(query.tag, camera.encrypt(integers, dropped=(4, 2)))
    _, scores = query.scores(index.answer(sent, client.keys()))
    expected = rounded(index.quantisation, STORED, QUERY_VECTOR)
    np.testing.assert_allclose(scores, expected, rtol=1e-12, atol=1e-12)


def test_indices_that_are_not_for_thin_clients_say_so() -> None:
    index = search.Index.of(STORED)
    with pytest.raises(ParameterError, match="thin=True"):
        _ = index.quantisation.client_parameters
    with pytest.raises(ParameterError, match="thin=True"):
        search.Client(index.directory(), thin=True)
    with pytest.raises(ParameterError, match="encrypted vectors"):
        search.Quantisation(6, encrypted=True, thin=True)
    with pytest.raises(ParameterError, match=r"2\.\.8192"):
        search.Quantisation(1, thin=True)
    sent = thin_client(search.Index.of(STORED, thin=True)).encrypt([1], dropped=0)
    with pytest.raises(FormatError):
        index.answer(query_to_bytes(bytes(16), sent), b"")


def test_queries_of_others_are_refused() -> None:
    index = search.Index.of(STORED, thin=True)
    client = search.Client(index.directory(), thin=True)
    owner = thin.Client.from_secret(client.secret, index.quantisation.client_parameters)
    keys, query = client.keys(), client.query(QUERY_VECTOR)
    data, tag = query_ciphertext(query.data), query.tag

    for other in (
        search.Index.of(STORED, levels=200, thin=True),
        search.Index.of(vectors(5, 128), thin=True),
        search.Index.of(STORED, metric="euclidean", thin=True),
    ):
        # The ring is the same, and so the identity: the scale differs.
        with pytest.raises(FormatError, match="scale"):
            other.answer(query.data, keys)
    stranger = search.Client(index.directory(), thin=True)
    with pytest.raises(MismatchError, check=lambda error: error.code == "key"):
        index.answer(query.data, stranger.keys())
    with pytest.raises(MissingKeyError):
        index.answer(query.data, kw.EvaluationKeys(index.parameters).to_bytes())

    foreign = kw.Parameters.from_bits(13, [60], [60], 40)
    unlike = thin.Client(thin.Parameters(foreign, scale=1 << 40, fraction_bits=9))
    with pytest.raises(MismatchError):
        index.answer(query_to_bytes(tag, unlike.encrypt([1], dropped=0)), keys)
    damaged = bytearray(data)
    damaged[-100] ^= 1
    whole, secret = owner.encrypt([1]), owner.secret_bytes()
    for sent in (b"", data[:-1], data[:70], data + b"x", bytes(damaged), whole, secret):
        with pytest.raises(FormatError):
            index.answer(query_to_bytes(tag, sent), keys)


def test_answers_of_others_are_refused() -> None:
    index = search.Index.of(STORED, thin=True)
    client, stranger = (search.Client(index.directory(), thin=True) for _ in range(2))
    query = client.query(QUERY_VECTOR)
    answer = index.answer(query.data, client.keys())
    other = stranger.query(QUERY_VECTOR)
    foreign = index.answer(other.data, stranger.keys())
    swapped = answer[: ANSWER.size] + foreign[ANSWER.size :]
    assert len(swapped) == len(answer)
    with pytest.raises(MismatchError):
        query.scores(swapped)
    with pytest.raises(FormatError):
        query.scores(answer[:-5] + bytes([answer[-5] ^ 1]) + answer[-4:])
    full = search.Client(index.directory())
    question = full.query(QUERY_VECTOR)
    theirs = index.answer(question.data, full.keys())
    head = ANSWER.pack(*ANSWER.unpack(answer[: ANSWER.size])[:4], len(theirs) - ANSWER.size)
    with pytest.raises(FormatError):
        query.scores(head + theirs[ANSWER.size :])
    index.delete([0])
    with pytest.raises(FormatError, check=lambda error: error.code == "revision"):
        query.scores(index.answer(query.data, client.keys()))


@pytest.mark.parametrize("k", [0, 301])
def test_bad_questions_are_refused_before_any_key(k: int) -> None:
    index = search.Index.of(STORED, thin=True)
    client = search.Client(index.directory(), thin=True)
    with pytest.raises(SearchError, check=lambda error: error.code == "norm"):
        client.query(np.zeros(6))
    with pytest.raises(SearchError, check=lambda error: error.code == "shape"):
        client.query(np.ones(7))
    with pytest.raises(SearchError, check=lambda error: error.code == "count"):
        client.query(QUERY_VECTOR).require_count(k)
