"""Threshold runs with Flower's components: set-up, rounds, dropouts, and what clients refuse."""

from collections.abc import Callable
from typing import Any

import keywright as kw
import numpy as np
import pytest
from flwr.app import Array, ArrayRecord, ConfigRecord, Message
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
from keywright.federated.threshold_protocol import DEAL, DECRYPT, JOIN, OPEN, Claims, Roster, seal, unseal
from numpy.typing import NDArray
from tests.federated.loopback import LoopbackGrid, Tamper, app

NODES = (11, 22, 33, 44)
ENCODING = Encoding(bound=4.0, max_clients=4, max_weight=500)
START = {"w": np.linspace(-1, 1, 210, dtype=np.float64).reshape(3, 70), "b": np.zeros(2)}


def train(arrays: dict[str, NDArray[Any]], node: int) -> dict[str, NDArray[Any]]:
    return {name: array * 0.5 + node / 50 for name, array in arrays.items()}


class Federation:
    """A threshold run of some rounds."""

    def __init__(
        self, *, rounds: int = 1, threshold: int = 3, client_threshold: int = 0, tamper: Tamper | None = None
    ) -> None:
        self.asked: list[str] = []
        self.replies: dict[tuple[str, int], Message] = {}

        def watch(node: int, reply: Message) -> Message | None:
            action = reply.metadata.message_type.partition(".")[2] or reply.metadata.message_type
            self.asked.append(action)
            self.replies[action, node] = reply
            return reply if tamper is None else tamper(node, reply)

        mod = ThresholdMod(ENCODING, client_threshold or threshold)
        apps = {node: app([mod], train, lambda node: node * 10) for node in NODES}
        for client in apps.values():
            mod.register(client)
        self.grid = LoopbackGrid(apps, watch)
        self.strategy = ThresholdFedAvg(ENCODING, threshold)
        start = ArrayRecord({name: Array(value) for name, value in START.items()})
        self.result = self.strategy.start(self.grid, start, num_rounds=rounds)

    def metric(self, name: str) -> Any:
        return self.result.train_metrics_clientapp[max(self.result.train_metrics_clientapp)][name]


def assert_average(federation: Federation, rounds: int = 1, nodes: tuple[int, ...] = NODES) -> None:
    arrays: dict[str, NDArray[Any]] = dict(START)
    total, bound = sum(nodes) * 10, 0.0
    for _ in range(rounds):
        trained = [train(arrays, node) for node in nodes]
        weights = [node * 10 / total for node in nodes]
        arrays = {
            name: np.sum([w * t[name] for w, t in zip(weights, trained, strict=True)], 0) for name in arrays
        }
        bound = bound / 2 + ENCODING.error_bound(len(nodes), total) + 32 * float(np.finfo(np.float64).eps)
    for name, value in federation.result.arrays.items():
        assert np.abs(value.numpy() - arrays[name]).max() <= bound


def action_of(reply: Message) -> str:
    return reply.metadata.message_type.partition(".")[2]


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
    with pytest.raises(kw.AggregationError) as caught:
        Federation(threshold=4, tamper=lambda node, reply: None if node == 33 else reply)
    assert (caught.value.reason, caught.value.found, caught.value.expected) == ("set-up", 3, 4)


def test_a_server_with_a_lower_threshold_gets_no_shares() -> None:
    with pytest.raises(kw.AggregationError) as caught:
        Federation(threshold=2, client_threshold=3)
    assert caught.value.reason == "set-up"


@pytest.mark.parametrize("change", [{"key": b"short"}, {"nonce": 7}, {"key": "text"}])
def test_a_client_that_joins_with_nonsense_is_left_out(change: dict[str, Any]) -> None:
    def alter(node: int, reply: Message) -> Message:
        if node == 33 and action_of(reply) == JOIN:
            reply.content.config_records["keywright"].update(change)
        return reply

    assert_average(Federation(tamper=alter), nodes=(11, 22, 44))


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
        (lambda data: Claims(data[8:24], 1, 22, 220, 213).to_bytes() + data[44:], "number of values"),
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
    assert [getattr(r.error, "reason", "") for r in federation.strategy.refusals] == [reason]
    assert_average(federation, nodes=(11, 33, 44))


def decrypt_request(federation: Federation, **change: Any) -> str:
    """What node 44 says to a request to decrypt."""
    values: dict[str, Any] = {
        "sum": federation.replies["train", 11].content.array_records["arrays"][UPDATE].data[44:],
        "round": 2,
        "active": list(NODES),
        "contributors": [11, 22],
    }
    config = ConfigRecord(values | change)
    from flwr.app import RecordDict

    message = Message(RecordDict({"keywright": config}), 44, f"query.{DECRYPT}")
    reply = next(iter(federation.grid.send_and_receive([message])))
    return str(reply.error.reason) if reply.has_error() else "answered"


def test_a_client_decrypts_one_sum_a_round() -> None:
    federation = Federation(threshold=4)  # so that node 44 answered in round 1
    assert "another sum of round 1" in decrypt_request(federation, round=1)
    assert decrypt_request(federation) == "answered"
    assert decrypt_request(federation) == "answered"
    other = federation.replies["train", 22].content.array_records["arrays"][UPDATE].data[44:]
    assert "another sum of round 2" in decrypt_request(federation, sum=other)
    assert "known contributors" in decrypt_request(federation, round=3, contributors=[11, 11])
    assert "known contributors" in decrypt_request(federation, round=3, contributors=[11, 12])
    assert "ParameterError" in decrypt_request(federation, round=3, active=[11, 22, 33, 33])
    assert "ParameterError" in decrypt_request(federation, round=3, active=[11, 44])
    assert "not on the roster" in decrypt_request(federation, round=3, active=[11, 22, 33, 45])
    assert "FormatError" in decrypt_request(federation, round=3, sum=b"garbage" * 20)
    assert "ParameterError" in decrypt_request(federation, round=3, sum="text")


def test_the_engine_makes_keys_and_decrypts() -> None:
    parameters = ThresholdParameters(3, 2, max_inputs=3, magnitude=1000, max_values=10)
    seed = bytes(range(32))
    parties = [ThresholdParty.generate(parameters) for _ in range(3)]
    key = ThresholdKey.combine(parameters, seed, [party.public_half(seed) for party in parties])
    dealt = [party.deal() for party in parties]
    shares = [ThresholdShare.combine(parameters, j + 1, [d[j] for d in dealt]) for j in range(3)]
    key = ThresholdKey.from_bytes(key.to_bytes(), parameters)
    shares = [ThresholdShare.from_bytes(share.to_bytes(), parameters, share.party) for share in shares]
    total = parameters.add([key.encrypt(np.array([1000, -5])), key.encrypt(np.array([-1000, 7]))])
    for active in ([1, 2], [3, 1], [2, 3]):
        partials = [shares[j - 1].partial(total, active) for j in active]
        assert parameters.finish(total, partials, 2, 2).tolist() == [0, 2]
    with pytest.raises(kw.AggregationError):
        parameters.finish(total, [shares[0].partial(total, [1, 2]), shares[2].partial(total, [3, 1])], 2, 2)
    with pytest.raises(kw.EncodeError):
        key.encrypt(np.array([1001]))
    with pytest.raises(kw.ParameterError):
        ThresholdKey.combine(parameters, seed, [parties[0].public_half(seed)])
    with pytest.raises(kw.FormatError):
        parameters.add([b""])
    with pytest.raises(kw.ParameterError):
        ThresholdParameters(3, 4, max_inputs=3, magnitude=1000, max_values=10)
    assert repr(shares[0]) == "KeyShare(party 1, ..)"


def test_sealed_shares_open_for_their_receiver_only() -> None:
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

    keys = [X25519PrivateKey.generate() for _ in range(3)]
    publics = [key.public_key().public_bytes_raw() for key in keys]
    roster = Roster.of([1, 2, 3], publics, [bytes([i] * 32) for i in range(3)])
    sealed = seal(keys[0], roster, 1, 2, b"share")
    assert unseal(keys[1], roster, 1, 2, sealed) == b"share"
    for own, sender, receiver in ((keys[2], 1, 3), (keys[1], 3, 2), (keys[0], 2, 1)):
        with pytest.raises(kw.FormatError):
            unseal(own, roster, sender, receiver, sealed)
    other = Roster.of([1, 2, 3], publics, [bytes([9] * 32)] * 3)
    with pytest.raises(kw.FormatError):
        unseal(keys[1], other, 1, 2, sealed)
    for nodes, count in (([1, 3, 2], 3), ([1, 1, 2], 3), ([1, 2], 3)):
        with pytest.raises(kw.FormatError):
            Roster.of(nodes, publics[:count], [bytes(32)] * count)
