"""Threshold runs with Flower's components: set-up, rounds, dropouts, and refusals by clients."""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keywright as kw
import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from flwr.app import Array, ArrayRecord, ConfigRecord, Message, RecordDict
from keywright.federated import (
    Encoding,
    ThresholdFedAvg,
    ThresholdKey,
    ThresholdMod,
    ThresholdParameters,
    ThresholdParty,
    ThresholdShare,
)
from keywright.federated.records import UPDATE
from keywright.federated.threshold.protocol import (
    DEAL,
    DECRYPT,
    JOIN,
    OPEN,
    Claims,
    Roster,
    seal,
    threshold_parameters,
    unseal,
)
from tests.federated.loopback import Tamper, TamperedGrid
from tests.federated.threshold.federation import (
    ENCODING,
    NODES,
    RECORD,
    Federation,
    action_of,
    assert_average,
)
from tests.federated.threshold.test_client_answers import refusal


def test_rounds_are_those_of_fedavg_within_rounding() -> None:
    federation = Federation(rounds=3)
    assert_average(federation, rounds=3)
    assert federation.metric("keywright-updates") == 4
    assert federation.metric("keywright-decrypt-exchanges") == 1
    # One set-up of three exchanges, one decryption by three clients in every round.
    assert [federation.asked.count(a) for a in (JOIN, DEAL, OPEN, DECRYPT)] == [4, 4, 4, 9]


def test_a_client_that_vanishes_is_replaced() -> None:
    def lose(node: int, reply: Message) -> Message | None:
        return None if node == 22 and action_of(reply) == DECRYPT else reply

    federation = Federation(rounds=2, tamper=lose)
    assert_average(federation, rounds=2)
    assert federation.metric("keywright-decrypt-exchanges") in (1, 2)

    def vanish(node: int, reply: Message) -> Message | None:
        gone = node == 22 and (action_of(reply) == DECRYPT or "arrays" in reply.content.array_records)
        return None if gone else reply

    federation = Federation(tamper=vanish)
    assert_average(federation, nodes=(11, 33, 44))
    assert federation.metric("keywright-missing") == 1


def test_too_few_to_decrypt_leave_the_model_as_it_was() -> None:
    def lose(node: int, reply: Message) -> Message | None:
        return None if node in (22, 33) and action_of(reply) == DECRYPT else reply

    federation = Federation(tamper=lose)
    assert not federation.result.train_metrics_clientapp


@pytest.mark.parametrize("action", [JOIN, DEAL, OPEN])
def test_a_client_that_fails_in_the_set_up_is_left_out(action: str) -> None:
    federation = Federation(
        tamper=lambda node, reply: None if node == 33 and action_of(reply) == action else reply
    )
    assert_average(federation, nodes=(11, 22, 44))


def test_fewer_clients_than_the_threshold_are_an_error() -> None:
    with pytest.raises(kw.errors.AggregationError) as caught:
        Federation(threshold=4, tamper=lambda node, reply: None if node == 33 else reply)
    assert (caught.value.code, caught.value.found, caught.value.expected) == ("set_up", 3, 4)


def test_a_server_with_a_lower_threshold_gets_no_shares() -> None:
    with pytest.raises(kw.errors.AggregationError) as caught:
        Federation(threshold=2, client_threshold=3)
    assert caught.value.code == "set_up"


@pytest.mark.parametrize("change", [{"key": b"short"}, {"nonce": 7}, {"key": "text"}])
def test_a_client_that_joins_with_nonsense_is_left_out(change: dict[str, Any]) -> None:
    def alter(node: int, reply: Message) -> Message:
        if node == 33 and action_of(reply) == JOIN:
            reply.content.config_records["keywright"].update(change)
        return reply

    assert_average(Federation(tamper=alter), nodes=(11, 22, 44))


@pytest.mark.parametrize(
    "change", [{"nonce": b"n" * 32}, {"key": X25519PrivateKey.generate().public_key().public_bytes_raw()}]
)
def test_clients_that_join_with_the_same_are_left_out(change: dict[str, Any]) -> None:
    """The others refused a roster with a nonce twice: two clients ended every set-up."""

    def alter(node: int, reply: Message) -> Message:
        if node in (22, 33) and action_of(reply) == JOIN:
            reply.content.config_records["keywright"].update(change)
        return reply

    assert_average(Federation(threshold=2, tamper=alter), nodes=(11, 44))


def test_an_altered_share_is_noticed_by_its_receiver() -> None:
    def alter(node: int, reply: Message) -> Message:
        if node == 11 and action_of(reply) == DEAL:
            config = reply.content.config_records["keywright"]
            shares: Any = list(config["shares"])  # type: ignore[arg-type]
            if len(shares) == len(NODES):  # the first set-up alone
                shares[1] = shares[1][:-1] + bytes([shares[1][-1] ^ 1])
            config["shares"] = shares
        return reply

    federation = Federation(tamper=alter)
    assert_average(federation, nodes=(11, 33, 44))


def altered(action: str, node: int, change: dict[str, Any]) -> Tamper:
    """Change values in one node's replies to a step of the protocol."""

    def alter(sender: int, reply: Message) -> Message:
        if sender == node and action_of(reply) == action and not reply.has_error():
            reply.content.config_records["keywright"].update(change)
        return reply

    return alter


LOW_ORDER = bytes(32)


@pytest.mark.parametrize(
    ("action", "change"),
    [
        (JOIN, {"key": LOW_ORDER}),
        (JOIN, {"key": (1).to_bytes(32, "little")}),
        (DEAL, {"half": b"garbage"}),
        (DEAL, {"half": 3}),
        (DEAL, {"shares": [b"short"]}),
        (OPEN, {"session": bytes(16)}),
        (OPEN, {"session": [1, 2]}),
        (OPEN, {"session": 3}),
    ],
)
def test_a_client_that_breaks_the_set_up_is_left_out(action: str, change: dict[str, Any]) -> None:
    assert_average(Federation(tamper=altered(action, 33, change)), nodes=(11, 22, 44))


def test_clients_notice_another_public_half() -> None:
    """A server cannot replace a client's half by its own: shares are bound to halves."""
    federation = Federation()
    halves = [federation.replies[DEAL, n].content.config_records["keywright"]["half"] for n in NODES]
    shares = [federation.replies[DEAL, n].content.config_records["keywright"]["shares"] for n in NODES]
    federation.grid.contexts[11].state[RECORD] = ConfigRecord(federation.dealt[11])
    values = {"shares": [s[0] for s in shares], "halves": [halves[0], halves[2], halves[1], halves[3]]}  # type: ignore[index]
    assert "public half of party 2 was altered" in refusal(federation, OPEN, 11, values)
    values["halves"] = halves
    assert refusal(federation, OPEN, 11, values) == ""


@pytest.mark.parametrize(
    "change",
    [{"partial": b"garbage"}, {"partial": b""}, {"partial": 7}, {"partial": "text"}],
)
def test_a_part_that_is_none_costs_its_sender_alone(change: dict[str, Any]) -> None:
    federation = Federation(tamper=altered(DECRYPT, 22, change))
    assert_average(federation)
    assert {refusal.node for refusal in federation.strategy.refusals} <= {22}


@pytest.mark.parametrize("liar", NODES)
def test_a_part_that_is_wrong_is_found_by_leaving_clients_out(liar: int) -> None:
    def lie(node: int, reply: Message) -> Message:
        if node == liar and action_of(reply) == DECRYPT:
            config = reply.content.config_records["keywright"]
            seen.append(bytes(config["partial"]))  # type: ignore[arg-type]
            config["partial"] = seen[0]
        return reply

    seen: list[bytes] = []
    # The part of round 1 in round 2.
    federation = Federation(rounds=2, tamper=lie)
    assert_average(federation, rounds=2)
    assert 1 <= federation.metric("keywright-decrypt-exchanges") <= 4


def test_an_update_of_fewer_ciphertexts_is_refused() -> None:
    start = {"w": np.linspace(-1, 1, 9000)}

    def cut(node: int, reply: Message) -> Message:
        if node == 22 and "arrays" in reply.content.array_records:
            data = reply.content.array_records["arrays"][UPDATE].data
            short = ThresholdKey.from_bytes(joint(), federation_parameters).encrypt(np.zeros(5, np.int64))
            data = data[: Claims.BYTES] + short
            reply.content["arrays"] = ArrayRecord({UPDATE: Array("uint8", (len(data),), UPDATE, data)})
        return reply

    federation_parameters = threshold_parameters(ENCODING, 4, 3, 9000)
    grids: list[TamperedGrid] = []

    def joint() -> bytes:
        return bytes(grids[0].contexts[22].state.config_records[RECORD]["joint"])  # type: ignore[arg-type]

    federation = Federation(tamper=cut, start=start, grids=grids)
    assert [refusal.node for refusal in federation.strategy.refusals] == [22]
    assert federation.metric("keywright-updates") == 3


def test_a_strategy_that_starts_twice_goes_on_counting() -> None:
    federation = Federation(rounds=2)
    federation.running = True
    arrays = federation.result.arrays
    federation.result = federation.strategy.start(federation.grid, arrays, num_rounds=1)
    assert {claims_of(federation, node).round for node in NODES} == {3}
    assert_average(federation, rounds=3)


def test_a_model_of_another_size_is_not_trained() -> None:
    federation = Federation()
    arrays = ArrayRecord({"w": Array(np.zeros(5))})
    config = ConfigRecord({"server-round": 2})
    message = Message(RecordDict({"arrays": arrays, "config": config}), 11, "train")
    reply = next(iter(federation.grid.send_and_receive([message])))
    assert "the model has 5 values" in str(reply.error.reason)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda data: b"garbage" * 30, "foreign"),
        (lambda data: data[:40], "foreign"),
        (lambda data: data[:-1], "truncated"),
        (lambda data: data[:3000] + bytes([data[3000] ^ 1]) + data[3001:], "checksum"),
        (lambda data: Claims(bytes(16), 1, 22, 220, 212).to_bytes() + data[44:], "session"),
        (lambda data: Claims(data[8:24], 2, 22, 220, 212).to_bytes() + data[44:], "round"),
        (lambda data: Claims(data[8:24], 1, 11, 220, 212).to_bytes() + data[44:], "client"),
        (lambda data: Claims(data[8:24], 1, 22, 220, 213).to_bytes() + data[44:], "number_of_values"),
        (lambda data: Claims(data[8:24], 1, 22, 221, 212).to_bytes() + data[44:], "weight"),
    ],
)
def test_a_bad_update_is_refused_and_the_round_goes_on(change: Callable[[bytes], bytes], reason: str) -> None:
    def alter(node: int, reply: Message) -> Message:
        if node == 22 and "arrays" in reply.content.array_records:
            data = change(reply.content.array_records["arrays"][UPDATE].data)
            reply.content["arrays"] = ArrayRecord({UPDATE: Array("uint8", (len(data),), UPDATE, data)})
        return reply

    federation = Federation(tamper=alter)
    assert [getattr(r.error, "code", "") for r in federation.strategy.refusals] == [reason]
    assert_average(federation, nodes=(11, 33, 44))


def test_what_does_not_fit_is_refused_before_anybody_is_asked() -> None:
    page = Encoding(bound=4.0, max_clients=30, max_weight=2000, bits=30)
    ThresholdMod(page, threshold=20)
    ThresholdFedAvg(page, threshold=20, min_available_nodes=30)
    assert threshold_parameters(page, 30, 20, 21_840).log_q < 122
    assert threshold_parameters(page, 30, 20, 1 << 20).log_q < 122
    wide = Encoding(bound=4.0, max_clients=30, max_weight=2000, bits=40)
    for make in (lambda: ThresholdMod(wide, 20), lambda: ThresholdFedAvg(wide, 20, min_available_nodes=30)):
        with pytest.raises(
            kw.errors.ParameterError, match=r"declare Encoding\(bits=3\d\) or fewer"
        ) as caught:
            make()
        assert caught.value.what == "bits of the modulus"


def test_a_first_round_of_fewer_than_the_threshold_is_an_error() -> None:
    with pytest.raises(kw.errors.AggregationError, match="raise fraction_train") as caught:
        Federation(threshold=3, fraction_train=0.5)
    assert (caught.value.code, caught.value.found, caught.value.expected) == ("too_few", 2, 3)


def test_keys_outlive_the_server_and_the_run(tmp_path: Path) -> None:
    first = Federation(rounds=2, folder=tmp_path)
    assert first.asked.count(JOIN) == 4
    arrays = {name: value.numpy() for name, value in first.result.arrays.items()}
    again = Federation(rounds=1, folder=tmp_path, start=arrays)
    assert again.asked.count(JOIN) == again.asked.count(OPEN) == 0
    assert again.asked.count(DECRYPT) == 3
    assert {claims_of(again, node).round for node in NODES} == {3}
    assert {claims_of(first, node).session for node in NODES} == {claims_of(again, 11).session}
    assert_average(again, rounds=3)
    for node in NODES:
        stored = tmp_path / str(node) / f"threshold-{node}.json"
        assert stored.stat().st_mode & 0o77 == 0
    # Another declaration, another model, garbage.
    with pytest.raises(kw.errors.ParameterError, match="name another file"):
        ThresholdFedAvg(ENCODING, 2, state=tmp_path / "server.json")
    with pytest.raises(kw.errors.AggregationError, match="the keys were made for 212"):
        Federation(folder=tmp_path, start={"w": np.zeros(7)})
    for garbage in (b"", b"[]", b"{}}", b'{"nodes": 3}', (tmp_path / "server.json").read_bytes()[:-30]):
        (tmp_path / "server.json").write_bytes(garbage)
        with pytest.raises((kw.errors.FormatError, kw.errors.ParameterError)):
            ThresholdFedAvg(ENCODING, 3, state=tmp_path / "server.json")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no named pipes in folders")
def test_a_state_that_is_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "server.json")
    with pytest.raises(kw.errors.FormatError, match="not a regular file"):
        ThresholdFedAvg(ENCODING, 3, state=tmp_path / "server.json")


def claims_of(federation: Federation, node: int) -> Claims:
    return Claims.split(federation.replies["train", node].content.array_records["arrays"][UPDATE].data)[0]


def test_the_engine_makes_keys_and_decrypts() -> None:
    parameters = ThresholdParameters(3, 2, max_inputs=3, magnitude=1000, max_values=10)
    seed, session = bytes(range(32)), bytes(16)
    parties = [ThresholdParty.generate(parameters, seed) for _ in range(3)]
    key = ThresholdKey.combine(parameters, seed, [party.public_half() for party in parties])
    assert parties[0].public_half() == parties[0].public_half()
    dealt = [party.deal() for party in parties]
    keys = [[bytes([min(i, j), max(i, j)]) * 16 for i in range(3)] for j in range(3)]
    shares = [ThresholdShare.combine(parameters, j + 1, [d[j] for d in dealt], keys[j]) for j in range(3)]
    key = ThresholdKey.from_bytes(key.to_bytes(), parameters)
    shares = [
        ThresholdShare.from_bytes(share.to_bytes(), parameters, share.party, own)
        for share, own in zip(shares, keys, strict=True)
    ]

    def partial(party: int, active: list[int]) -> bytes:
        return shares[party - 1].partial(total, active, session=session, round=1)

    left, right = np.resize([1000, -5], 10), np.resize([-1000, 7], 10)
    total = parameters.add([key.encrypt(left), key.encrypt(right)])
    for active in ([1, 2], [3, 1], [2, 3]):
        partials = [partial(party, active) for party in active]
        assert parameters.finish(total, partials, 2, 10).tolist() == (left + right).tolist()
    assert partial(1, [1, 2]) == partial(1, [2, 1]) != partial(1, [1, 3])
    # Each of ten values passes for a sum with a probability of 0.12 at these parameters: all do once in 1e9.
    with pytest.raises(kw.errors.AggregationError):
        parameters.finish(total, [partial(1, [1, 2]), partial(3, [3, 1])], 2, 10)
    with pytest.raises(kw.errors.EncodeError):
        key.encrypt(np.array([1001]))
    with pytest.raises(kw.errors.ParameterError):
        ThresholdKey.combine(parameters, seed, [parties[0].public_half()])
    with pytest.raises(kw.errors.ParameterError):
        ThresholdShare.combine(parameters, 1, [d[0] for d in dealt], keys[0][:2])
    with pytest.raises(kw.errors.AggregationError):
        ThresholdShare.combine(parameters, 1, [d[0] for d in dealt], [bytes(32)] * 3)
    with pytest.raises(kw.errors.FormatError):
        parameters.add([b""])
    with pytest.raises(kw.errors.ParameterError):
        ThresholdParameters(3, 4, max_inputs=3, magnitude=1000, max_values=10)
    assert repr(shares[0]) == "KeyShare(party 1, ..)"


def test_sealed_shares_open_for_their_receiver_only() -> None:
    keys = [X25519PrivateKey.generate() for _ in range(3)]
    publics = [key.public_key().public_bytes_raw() for key in keys]
    roster = Roster.of([1, 2, 3], publics, [bytes([i] * 32) for i in range(3)])
    sealed = seal(keys[0], roster, 1, 2, b"share", b"half")
    assert unseal(keys[1], roster, 1, 2, sealed, b"half") == b"share"
    for own, sender, receiver in ((keys[2], 1, 3), (keys[1], 3, 2), (keys[0], 2, 1)):
        with pytest.raises(kw.errors.FormatError):
            unseal(own, roster, sender, receiver, sealed, b"half")
    with pytest.raises(kw.errors.FormatError):
        unseal(keys[1], roster, 1, 2, sealed, b"another half")
    other = Roster.of([1, 2, 3], publics, [bytes([9] * 32)] * 3)
    with pytest.raises(kw.errors.FormatError):
        unseal(keys[1], other, 1, 2, sealed, b"half")
    for nodes, count in (([1, 3, 2], 3), ([1, 1, 2], 3), ([1, 2], 3)):
        with pytest.raises(kw.errors.FormatError):
            Roster.of(nodes, publics[:count], [bytes(32)] * count)
