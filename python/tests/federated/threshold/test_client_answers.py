"""What a client answers, and how often: one sum in a round, a few sets of clients, each step once."""

import hashlib
import itertools
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import keywright as kw
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from flwr.app import ConfigRecord, Message, RecordDict
from keywright.federated import ThresholdParameters
from keywright.federated.records import UPDATE
from keywright.federated.threshold.protocol import DEAL, DECRYPT, JOIN, OPEN, Claims, Roster, mask_key, seal
from tests.federated.threshold.federation import NODES, Federation, action_of


def ask(federation: Federation, action: str, node: int, values: dict[str, Any]) -> Message:
    """Return a node's reply to a message of the protocol."""
    content = RecordDict({"keywright": ConfigRecord(values)})
    return next(iter(federation.grid.send_and_receive([Message(content, node, f"query.{action}")])))


def refusal(federation: Federation, action: str, node: int, values: dict[str, Any]) -> str:
    reply = ask(federation, action, node, values)
    return str(reply.error.reason) if reply.has_error() else ""


def single_sum(federation: Federation, node: int) -> bytes:
    """Return the update of one client of the last round, as a server could send it for a sum."""
    record = federation.replies["train", node].content.array_records["arrays"]
    return bytes(record[UPDATE].data[Claims.BYTES :])


def decrypt_request(federation: Federation, node: int = 44, **change: Any) -> str:
    """Return a node's reply to a decryption request: an error, or the digest of its answer."""
    values = federation.messages.get((DECRYPT, node)) or {
        "sum": single_sum(federation, 11),
        "round": 1,
        "active": list(NODES),
        "contributors": [11, 22],
    }
    reply = ask(federation, DECRYPT, node, values | change)
    if reply.has_error():
        return str(reply.error.reason)
    return "answered " + hashlib.sha256(reply.content.config_records["keywright"]["partial"]).hexdigest()  # type: ignore[arg-type]


def test_a_client_decrypts_one_sum_a_round() -> None:
    federation = Federation(threshold=4)  # so that node 44 answered in round 1
    answer = decrypt_request(federation)
    assert answer.startswith("answered")
    assert decrypt_request(federation) == answer
    other = single_sum(federation, 22)
    assert "another sum of round 1" in decrypt_request(federation, sum=other)
    assert "known contributors" in decrypt_request(federation, contributors=[11, 11])
    assert "known contributors" in decrypt_request(federation, contributors=[11, 12])
    assert "ParameterError" in decrypt_request(federation, active=[11, 22, 33, 33])
    assert "ParameterError" in decrypt_request(federation, active=[11, 44])
    assert "not on the roster" in decrypt_request(federation, active=[11, 22, 33, 45])
    assert "another sum" in decrypt_request(federation, sum=b"garbage" * 20)
    assert "ParameterError" in decrypt_request(federation, sum="text")
    assert decrypt_request(federation) == answer


def test_a_client_decrypts_only_in_the_round_it_was_asked_to_train_in() -> None:
    federation = Federation(rounds=2)
    idle = federation.idle(2)
    others = [node for node in NODES if node != idle]
    for number in (1, 3, 4, 5, 6):
        for node in NODES:
            refused = decrypt_request(federation, idle, sum=single_sum(federation, node), round=number)
            assert "last trained in round 2" in refused
    fresh = {"sum": single_sum(federation, 11), "round": 2, "active": [idle, *others[:2]]}
    assert decrypt_request(federation, idle, **fresh).startswith("answered")
    for node in NODES[1:]:
        refused = decrypt_request(federation, idle, **fresh | {"sum": single_sum(federation, node)})
        assert "another sum of round 2" in refused


def test_a_sum_is_answered_with_a_few_sets_of_clients() -> None:
    nodes = (11, 22, 33, 44, 55, 66)
    federation = Federation(nodes=nodes, min_train_nodes=4, fraction_train=4 / 6)
    node = next(n for n in nodes if (DECRYPT, n) in federation.messages)
    pairs = list(itertools.combinations([n for n in nodes if n != node], 2))
    assert len(pairs) == 10
    answers = [decrypt_request(federation, node, active=[node, *pair]) for pair in pairs]
    kept = [answer for answer in answers if answer.startswith("answered")]
    # One of these sets may be the one that decrypted the round.
    assert len(kept) == ThresholdParameters.MAX_SETS == len(set(kept))
    assert all("answered with 8 sets" in answer for answer in answers if answer not in kept)
    assert [decrypt_request(federation, node, active=[*pair, node]) for pair in pairs] == answers


def test_two_sums_at_once_get_one_answer() -> None:
    federation = Federation(rounds=1)
    idle = federation.idle(1)
    others = [node for node in NODES if node != idle]
    values: dict[str, Any] = {"round": 1, "active": [idle, *others[:2]], "contributors": [11, 22]}
    contexts, app_of = federation.grid.contexts, federation.grid.apps

    def request(node: int) -> str:
        content = RecordDict({"keywright": ConfigRecord(values | {"sum": single_sum(federation, node)})})
        message = Message(content, idle, f"query.{DECRYPT}")
        try:
            app_of[idle](message, contexts[idle])
        except kw.errors.AggregationError as error:
            return str(error.code)
        return "answered"

    with ThreadPoolExecutor(4) as threads:
        answers = list(threads.map(request, NODES))
    assert sorted(answers) == ["answered", "round", "round", "round"]


def test_the_steps_of_a_set_up_come_once() -> None:
    federation = Federation()
    for action in (DEAL, OPEN):
        assert "has opened" in refusal(federation, action, 11, federation.messages[action, 11])
    joined = ask(federation, JOIN, 11, {})
    assert not joined.has_error()
    # The share is gone, and the earlier exchange does not match the new one.
    assert "has joined" in decrypt_request(federation, 11)
    assert "another key of this client" in refusal(federation, DEAL, 11, federation.messages[DEAL, 11])


def test_a_deal_is_answered_once() -> None:
    # The replies to DEAL are lost: the set-up ends, and the clients still have their dealt shares.
    lost = lambda node, reply: None if action_of(reply) == DEAL else reply  # noqa: E731
    federation = Federation(tamper=lost, fails=True)
    federation.grid.tamper = lambda node, reply: reply
    assert "has dealt" in refusal(federation, DEAL, 22, federation.messages[DEAL, 22])


def test_a_rolled_back_client_seals_under_other_keys() -> None:
    """Even if a client's state is restored from a snapshot, no key and nonce encrypt two shares."""
    keys = [X25519PrivateKey.generate() for _ in range(2)]
    publics = [key.public_key().public_bytes_raw() for key in keys]
    roster = Roster.of([1, 2], publics, [bytes([i] * 32) for i in range(2)])
    sealed = [seal(keys[0], roster, 1, 2, bytes(64), b"half") for _ in range(50)]
    assert len({data[:32] for data in sealed}) == len({data[32:64] for data in sealed}) == 50


def test_masks_are_what_two_parties_alone_share() -> None:
    keys = [X25519PrivateKey.generate() for _ in range(3)]
    publics = [key.public_key().public_bytes_raw() for key in keys]
    roster = Roster.of([1, 2, 3], publics, [bytes([i] * 32) for i in range(3)])
    other = Roster.of([1, 2, 3], publics, [bytes([i + 1] * 32) for i in range(3)])
    masks = {(i, j): mask_key(keys[i - 1], roster, i, j) for i, j in itertools.permutations((1, 2, 3), 2)}
    assert all(masks[i, j] == masks[j, i] for i, j in masks)
    assert len(set(masks.values())) == 3
    assert mask_key(keys[0], other, 1, 2) not in masks.values()
