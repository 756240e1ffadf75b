"""A server that alters sums of a shared-key federation, and what clients' answers tell it."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keywright as kw
import numpy as np
import pytest
from flwr.app import Array, ArrayRecord, ConfigRecord, Context, Message, RecordDict
from flwr.clientapp import ClientApp
from flwr.supercore.task_identity import TaskIdentity
from keywright.errors import FormatError
from keywright.federated import (
    ArrayLayout,
    Encoding,
    EncryptedSum,
    EncryptedUpdate,
    EncryptionMod,
    SumKey,
    client_state,
)
from keywright.federated.loopback import RUN_ID
from keywright.federated.records import LAYOUT, SUM, TAG, blob, session
from keywright.federated.shared_key.opened_sums import MAX_ALTERED
from keywright.federated.shared_key.tags import ALTERED, PRIMES, add_tags, open_sum, tag_update
from tests.federated.loopback import app

ENCODING = Encoding(bound=4.0, max_clients=4, max_weight=500)
PARAMETERS = ENCODING.parameters
KEY = SumKey.generate(PARAMETERS, bytes(range(32)))
COUNT = 40
LAYOUT_OF_ALL = ArrayLayout.of({"w": np.zeros(COUNT)})
NODE = 11
Oracle = Callable[[bytes], bool]
"""Whether a client accepts the bytes of a sum."""


def updates(
    clients: tuple[int, ...] = (11, 22, 33), run_id: int = RUN_ID, number: int = 1, seed: int = 0
) -> tuple[list[EncryptedUpdate], list[bytes], np.ndarray]:
    """Updates of clients, their tags, and the sum of their integers."""
    name, updates, tags = session(ENCODING, LAYOUT_OF_ALL, run_id), [], []
    total = np.zeros(COUNT, np.int64)
    for client in clients:
        generator = np.random.default_rng([client, seed])
        integers = generator.integers(-PARAMETERS.magnitude, PARAMETERS.magnitude, COUNT)
        update = KEY.encrypt(integers, session=name, round=number, client=client, weight=client)
        updates.append(update)
        tags.append(tag_update(KEY, integers, update))
        total += integers
    return updates, tags, total


def with_added(data: bytes, place: int, number: int) -> bytes:
    """The bytes of a sum with a number added to one residue, and right checksums."""
    count, width = COUNT, PARAMETERS.value_bytes
    at = len(data) - 4 - count * width
    planes = [(at + 4 * place, 4), *((at + count * i + place, 1) for i in range(4, width))]
    value = int.from_bytes(b"".join(data[begin : begin + size] for begin, size in planes), "little")
    left = ((value + number) % PARAMETERS.modulus).to_bytes(width, "little")
    altered = bytearray(data)
    for begin, size in planes:
        altered[begin : begin + size], left = left[:size], left[size:]
    end = 44 + int.from_bytes(altered[32:36], "little")
    altered[-4:] = zlib.crc32(altered[end + 4 : -4], zlib.crc32(altered[:end])).to_bytes(4, "little")
    return bytes(altered)


def found_by(oracle: Oracle, data: bytes, place: int) -> int | None:
    """The attack: a value of a sum, by the largest number that may be added to it. None if all answers are
    the same."""
    limit = 3 * PARAMETERS.magnitude
    low, high, answers = 0, 2 * limit + 1, set[bool]()
    while high - low > 1:
        middle = (low + high) // 2
        accepted = oracle(with_added(data, place, middle << PARAMETERS.noise_bits))
        answers.add(accepted)
        low, high = (middle, high) if accepted else (low, middle)
    return limit - low if len(answers) == 2 else None


def accepts(work: Callable[[], object]) -> bool:
    try:
        work()
    except kw.errors.AggregationError:
        return False
    return True


def test_the_attack_reads_values_without_tags_and_nothing_with_them() -> None:
    sums, tags, expected = updates()
    data, tag = EncryptedSum.of(sums, PARAMETERS).to_bytes(), add_tags(tags)

    def without(changed: bytes) -> bool:
        return accepts(lambda: KEY.decrypt(EncryptedSum.from_bytes(changed, PARAMETERS)))

    def with_tags(changed: bytes) -> bool:
        return accepts(lambda: open_sum(KEY, EncryptedSum.from_bytes(changed, PARAMETERS), tag))

    for place in (0, 7, COUNT - 1):
        assert found_by(without, data, place) == expected[place]
        assert found_by(with_tags, data, place) is None
    assert np.array_equal(open_sum(KEY, EncryptedSum.from_bytes(data, PARAMETERS), tag), expected)


def refusal(data: bytes, tag: bytes) -> tuple[type[BaseException], str]:
    """What a server sees of a client that refuses a sum."""
    with pytest.raises(kw.errors.AggregationError) as caught:
        open_sum(KEY, EncryptedSum.from_bytes(data, PARAMETERS), tag)
    return type(caught.value), str(caught.value)


@pytest.mark.parametrize("number", [1, -1, 5, PRIMES[0], PRIMES[0] * 3, -PRIMES[3], 1 << 31, 1 << 32])
def test_every_alteration_has_one_answer(number: int) -> None:
    """In range and out of it, for multiples of the primes too."""
    sums, tags, _ = updates()
    data, tag = EncryptedSum.of(sums, PARAMETERS).to_bytes(), add_tags(tags)
    assert refusal(with_added(data, 3, number << PARAMETERS.noise_bits), tag)[1] == ALTERED


def test_tags_fit_no_other_sum() -> None:
    sums, tags, _ = updates()
    again, more, _ = updates(seed=1)
    data = EncryptedSum.of(sums, PARAMETERS).to_bytes()
    others = [
        add_tags([*tags[:2], more[2]]),
        add_tags(more),
        add_tags(tags)[:-1] + bytes([add_tags(tags)[-1] ^ 1]),
    ]
    _, elsewhere, _ = updates(number=2)
    for tag in (*others, add_tags(elsewhere)):
        assert refusal(data, tag)[1] == ALTERED
    with pytest.raises(kw.errors.FormatError):
        open_sum(KEY, EncryptedSum.of(sums[:2], PARAMETERS), add_tags(tags))
    for spoiled in (b"", tags[0][:-1], tags[0] + b"\0"):
        with pytest.raises(kw.errors.FormatError):
            add_tags([tags[1], spoiled])
    with pytest.raises(kw.errors.FormatError):
        open_sum(KEY, EncryptedSum.of(again, PARAMETERS), tags[0] * 3)


def test_tags_of_one_update_are_different_and_uniform() -> None:
    """The server has tags of chosen updates, of zeros for example; each has a mask of its own."""
    name, zeros = session(ENCODING, LAYOUT_OF_ALL, RUN_ID), np.zeros(COUNT, np.int64)
    update = KEY.encrypt(zeros, session=name, round=1, client=5, weight=5)
    seen = np.array([np.frombuffer(tag_update(KEY, zeros, update)[-16:], "<u4") for _ in range(4000)])
    bins = np.apply_along_axis(lambda words: np.bincount(words >> 28, minlength=16), 0, seen)
    # Chi squared with 15 degrees of freedom: above 80 with a probability of 10^-10.
    assert (((bins - 250) ** 2) / 250).sum(0).max() < 80


def zeros(arrays: dict[str, Any], node: int) -> dict[str, Any]:
    """Training that ends in zeros."""
    return {name: array * 0 for name, array in arrays.items()}


class Client:
    """A client's app and its contexts."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder, self.contexts = folder, dict[int, Context]()
        self.restart()

    def restart(self) -> None:
        """Another process with the same folder."""
        self.app: ClientApp = app([EncryptionMod(KEY, ENCODING, folder=self.folder)], zeros, lambda _: 5)
        if self.folder is not None:
            self.contexts.clear()

    def answer(self, data: bytes, tag: bytes, number: int = 2, run_id: int = RUN_ID) -> str:
        """The text that the server gets for a sum; empty if it is an update."""
        parts = {SUM: data, LAYOUT: LAYOUT_OF_ALL.to_bytes(), TAG: tag}
        content = RecordDict(
            {
                "arrays": ArrayRecord({name: blob(name, part) for name, part in parts.items()}),
                "config": ConfigRecord({"server-round": number}),
            }
        )
        TaskIdentity.run_id, TaskIdentity.node_id, TaskIdentity.task_id = run_id, 1, 1
        message = Message(content, NODE, "train")
        context = self.contexts.setdefault(run_id, Context(run_id, NODE, {}, RecordDict(), {}))
        try:
            reply = self.app(message, context)
        except kw.errors.AggregationError as error:
            return f"{error.code}: {error}"
        assert isinstance(reply.content.array_records["arrays"]["keywright.update"], Array)
        return ""


def summed(encrypted: list[EncryptedUpdate], tags: list[bytes]) -> tuple[bytes, bytes]:
    return EncryptedSum.of(encrypted, PARAMETERS).to_bytes(), add_tags(tags)


@pytest.fixture(params=["a folder", "Flower's state"])
def client(request: pytest.FixtureRequest, tmp_path: Path) -> Client:
    return Client(tmp_path if request.param == "a folder" else None)


def test_a_client_opens_one_sum_of_a_round(client: Client) -> None:
    sums, tags, _ = updates()
    assert client.answer(*summed(sums, tags)) == ""
    client.restart()
    assert client.answer(*summed(sums, tags)) == ""
    # A subset has a tag that fits, and would tell nothing; but one that is lost in rounding might.
    for changed in (summed(sums[:2], tags[:2]), (with_added(summed(sums, tags)[0], 0, 1), add_tags(tags))):
        assert client.answer(*changed).startswith("round: another sum of round 1")
        client.restart()
    later, more, _ = updates(number=2)
    assert client.answer(*summed(later, more), number=3) == ""
    assert client.answer(*summed(sums, tags), number=3).startswith("round: another sum of round 2")


def test_a_client_opens_nothing_after_an_altered_sum(client: Client) -> None:
    sums, tags, _ = updates()
    data, tag = summed(sums, tags)
    assert client.answer(with_added(data, 0, 1 << PARAMETERS.noise_bits), tag) == f"undecodable: {ALTERED}"
    client.restart()
    for number in (1, 2):
        assert client.answer(*summed(*updates(number=number)[:2]), number=3).startswith("altered: a sum of")


def test_a_client_that_met_many_altered_sums_opens_none(tmp_path: Path) -> None:
    client = Client(tmp_path)
    for run_id in range(100, 100 + MAX_ALTERED):
        data, tag = summed(*updates(run_id=run_id)[:2])
        wrong = with_added(data, 0, (run_id - 99) << PARAMETERS.noise_bits)
        assert client.answer(wrong, tag, run_id=run_id) == f"undecodable: {ALTERED}"
        client.restart()
    assert client.answer(*summed(*updates(run_id=7)[:2]), run_id=7).startswith("altered: this client met 8")
    assert (tmp_path / f"sums-{NODE}.json").stat().st_mode & 0o077 == 0


def test_runs_side_by_side_have_their_own_rounds(tmp_path: Path) -> None:
    client = Client(tmp_path)
    for number in (1, 2):
        for run_id in (5, 6):
            sums = summed(*updates(run_id=run_id, number=number)[:2])
            assert client.answer(*sums, number=3, run_id=run_id) == ""
    again = summed(*updates((11, 22), run_id=5, number=2)[:2])
    assert client.answer(*again, number=3, run_id=5).startswith("round: ")


def test_a_client_never_crashes_between_question_and_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sum is remembered before it is opened: a client that is killed meanwhile opens no other."""
    client = Client(tmp_path)
    sums, tags, _ = updates()

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("keywright.federated.encryption_mod.open_sum", killed)
        with pytest.raises(KeyboardInterrupt):
            client.answer(*summed(sums, tags))
    client.restart()
    assert client.answer(*summed(sums[:2], tags[:2])).startswith("round: ")
    assert client.answer(*summed(sums, tags)) == ""


def test_a_changed_bit_of_a_stored_state_is_refused(tmp_path: Path) -> None:
    """Of counters and shares, any bits are valid contents."""
    path, values = tmp_path / "state.json", {"round": 3, "share": bytes(range(40)), "sums": [b"a", b"b"]}
    client_state.write(path, values)
    assert client_state.read(path) == values
    intact = path.read_bytes()
    for place in range(len(intact)):
        path.write_bytes(intact[:place] + bytes([intact[place] ^ 1]) + intact[place + 1 :])
        with pytest.raises(FormatError):
            client_state.read(path)
