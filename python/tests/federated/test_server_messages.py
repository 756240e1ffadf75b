"""Every field of every message that a client reads of a server, with values that no honest server sends.

The answer is a typed error or that of an honest client. After a refusal the client's state is what it was.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
from flwr.app import Array, ArrayRecord, ConfigRecord, Context, Message, RecordDict
from flwr.supercore.task_identity import TaskIdentity
from keywright.errors import AggregationError, KeywrightError
from keywright.federated import Encoding, EncryptedSum, EncryptionMod, SumKey, ThresholdMod
from keywright.federated.array_layout import ArrayLayout
from keywright.federated.records import LAYOUT, SUM, TAG, blob, session
from keywright.federated.shared_key.tags import add_tags, tag_update
from keywright.federated.threshold.client import MAX_STEP
from keywright.federated.threshold.protocol import DEAL, DECRYPT, JOIN, OPEN, Claims, threshold_parameters
from tests.federated.loopback import app

ENCODING = Encoding(bound=1.0, bits=16, max_clients=8, max_weight=100, min_clients=2)
NODES, RUN = (1, 2, 3), 7
MODEL = {"w": np.linspace(-0.5, 0.5, 6)}
LOW_ORDER = [bytes(32), b"\x01" + bytes(31), b"\xec" + b"\xff" * 30 + b"\x7f"]
ODD: list[Any] = [
    None,
    True,
    False,
    -1,
    0,
    1 << 40,
    (1 << 63) - 1,
    1.0,
    -0.5,
    float("nan"),
    "",
    "1" * 32,
    b"",
    bytes(32),
]
ODD += [
    [],
    [0],
    [-1, 1, 2],
    [1 << 62],
    [1.0, 2.0, 3.0],
    ["1", "2", "3"],
    [True, False],
    [b""],
    [b"x" * 33] * 3,
]
ODD += [LOW_ORDER, [1, 1, 2], [3, 2, 1], [1, 2], [1, 9]]


def around(value: Any) -> list[Any]:
    """Wrong values near a right one: shorter, longer, twice, in another order, of low order."""
    if isinstance(value, list):
        near = [value[:-1], [*value, value[-1]], value[::-1], [value[0]] * len(value)]
        if isinstance(value[0], bytes):
            near += [[low, *value[1:]] for low in LOW_ORDER] + [
                [value[0], low, *value[2:]] for low in LOW_ORDER
            ]
            near += [[value[0], value[1][:-1], *value[2:]], [value[0], value[1] + b"x", *value[2:]]]
        return [each for each in near if each != value]
    return [value[:-1], value + b"x", value[::-1]] if isinstance(value, bytes) else []


@pytest.fixture(autouse=True, scope="module")
def _run() -> None:
    """As in the process of a ServerApp."""
    TaskIdentity.run_id, TaskIdentity.node_id, TaskIdentity.task_id = RUN, 1, 1


class Clients:
    """Three threshold clients, and the state of the first before each message."""

    def __init__(self) -> None:
        mods = [ThresholdMod(ENCODING, 2) for _ in NODES]
        self.apps = [app([mod], lambda arrays, node: arrays, lambda node: 10) for mod in mods]
        for mod, each in zip(mods, self.apps, strict=True):
            mod.register(each)
        self.contexts = [Context(RUN, node, {}, RecordDict(), {}) for node in NODES]
        self.steps: dict[str, tuple[dict[str, Any], RecordDict]] = {}
        joined = self.all(JOIN, [{}] * 3)
        terms = {
            "nodes": list(NODES),
            "keys": [j["key"] for j in joined],
            "nonces": [j["nonce"] for j in joined],
        }
        dealt = self.all(DEAL, [terms | {"threshold": 2, "count": 6}] * 3)
        halves = [deal["half"] for deal in dealt]
        self.all(OPEN, [{"halves": halves, "shares": [d["shares"][i] for d in dealt]} for i in range(3)])
        updates = [self.train(i, {"server-round": 1}) for i in range(3)]
        data = [update["keywright.update"].data[Claims.BYTES :] for update in updates]
        total = threshold_parameters(ENCODING, 3, 2, 6).add(data)
        self.all(DECRYPT, [{"sum": total, "round": 1, "contributors": list(NODES), "active": [1, 2]}] * 2)

    def all(self, action: str, messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
        self.steps[action] = messages[0], copy.deepcopy(self.contexts[0].state)
        return [self.ask(action, values, self.contexts[i], i) for i, values in enumerate(messages)]

    def ask(self, action: str, values: dict[str, Any], context: Context, which: int = 0) -> dict[str, Any]:
        content = RecordDict({"keywright": ConfigRecord(values)})
        reply = self.apps[which](Message(content, context.node_id, f"query.{action}"), context)
        return dict(reply.content.config_records["keywright"])

    def train(
        self, which: int, config: dict[str, Any], arrays: dict[str, Array] | None = None
    ) -> ArrayRecord:
        context = self.contexts[which]
        if which == 0 and "train" not in self.steps:
            self.steps["train"] = config, copy.deepcopy(context.state)
        record = ArrayRecord({k: Array(v) for k, v in MODEL.items()} if arrays is None else arrays)
        content = RecordDict({"arrays": record, "config": ConfigRecord(config)})
        reply = self.apps[which](Message(content, context.node_id, "train"), context)
        return reply.content.array_records["arrays"]


@pytest.fixture(scope="module")
def clients() -> Clients:
    return Clients()


FIELDS = [(DEAL, name) for name in ("nodes", "keys", "nonces", "threshold", "count")]
FIELDS += [(OPEN, "halves"), (OPEN, "shares")]
FIELDS += [(DECRYPT, name) for name in ("sum", "round", "contributors", "active")]


def odd_record(values: dict[str, Any]) -> ConfigRecord | None:
    """A record, if Flower itself carries the values."""
    try:
        return ConfigRecord(values)
    except (TypeError, ValueError):
        return None


@pytest.mark.parametrize(("action", "name"), FIELDS)
def test_no_value_of_a_field_makes_a_threshold_client_fail_untyped(
    clients: Clients, action: str, name: str
) -> None:
    right, state = clients.steps[action]
    tried = 0
    for value in [*ODD, *around(right[name])]:
        values = {k: v for k, v in right.items() if k != name} | ({} if value is None else {name: value})
        if odd_record(values) is None:
            continue
        tried += 1
        context = Context(RUN, NODES[0], {}, copy.deepcopy(state), {})
        try:
            clients.ask(action, values, context)
        except Exception as error:  # noqa: BLE001 (its type is what is tested)
            assert isinstance(error, KeywrightError), (value, repr(error))  # noqa: PT017
            assert context.state == state, value
        else:
            assert (name, type(value)) in ACCEPTED, value
    assert tried > 20


ACCEPTED = {
    ("count", int),
    ("contributors", list),
    ("active", list),
    ("halves", list),
    ("nodes", list),
    ("nonces", list),
    ("sum", bytes),
}
"""Fields of which a client accepts other values of the right type, because it cannot know better."""


@pytest.mark.parametrize("value", [v for v in ODD if not isinstance(v, list | bytes) and v is not None])
def test_rounds_that_are_none_are_not_kept(clients: Clients, value: Any) -> None:
    _, state = clients.steps["train"]
    clients.contexts[0].state, kept = copy.deepcopy(state), clients.contexts[0].state
    try:
        with pytest.raises(KeywrightError):
            clients.train(0, {"server-round": value})
        assert clients.contexts[0].state == state
        assert clients.train(0, {"server-round": 2})
    finally:
        clients.contexts[0].state = kept


BOMB = (
    b"\x93NUMPY\x01\x00v\x00"
    + b"{'descr': '<f8', 'fortran_order': False, 'shape': (1099511627776,), }".ljust(117)
    + b"\n"
)
ARRAYS = [
    Array("float64", (6,), "numpy.ndarray", data)
    for data in (b"", b"x", BOMB, Array(np.zeros(6, np.complex128)).data, Array(np.zeros(6)).data[:-1])
]
ARRAYS += [
    Array("float64", (6,), kind, Array(np.zeros(6)).data) for kind in ("", "pickle", "keywright.update")
]


SHAPES = [Array(np.zeros(shape)) for shape in ((0,), (7,))]
"""Shapes that are not the model's. A client of a shared key takes a model of any shape that has values."""

CASES = [(array, shared) for array in [*ARRAYS, SHAPES[0]] for shared in (False, True)] + [(SHAPES[1], False)]


@pytest.mark.parametrize(("array", "shared"), CASES, ids=range(len(CASES)))
def test_no_array_of_a_model_makes_a_client_fail_untyped(
    clients: Clients,
    array: Array,
    shared: bool,
) -> None:
    _, state = clients.steps["train"]
    context = Context(RUN, NODES[0], {}, copy.deepcopy(state), {})
    content = RecordDict({"arrays": ArrayRecord({"w": array}), "config": ConfigRecord({"server-round": 2})})
    client = (
        app([EncryptionMod(KEY, ENCODING)], lambda a, node: a, lambda node: 10) if shared else clients.apps[0]
    )
    with pytest.raises(KeywrightError):
        client(Message(content, NODES[0], "train"), context)
    assert context.state == state


KEY = SumKey.generate(ENCODING.parameters)


def shared_sum(run_id: int) -> dict[str, bytes]:
    """The parts of an honest sum of two clients in round 1."""
    layout, integers = ArrayLayout.of(MODEL), np.arange(6)
    name = session(ENCODING, layout, run_id)
    updates = [KEY.encrypt(integers, session=name, round=1, client=node, weight=10) for node in (1, 2)]
    total = EncryptedSum.of(updates, ENCODING.parameters)
    tags = add_tags([tag_update(KEY, integers, update) for update in updates])
    return {SUM: total.to_bytes(), LAYOUT: layout.to_bytes(), TAG: tags}


@pytest.mark.parametrize("part", [SUM, LAYOUT, TAG])
def test_no_part_of_a_sum_makes_a_client_of_a_shared_key_fail_untyped(part: str) -> None:
    client = app([EncryptionMod(KEY, ENCODING)], lambda arrays, node: arrays, lambda node: 10)

    def ask(parts: dict[str, Array]) -> Context:
        context = Context(RUN, NODES[0], {}, RecordDict(), {})
        config = ConfigRecord({"server-round": 2})
        message = Message(RecordDict({"arrays": ArrayRecord(parts), "config": config}), NODES[0], "train")
        try:
            client(message, context)
        except Exception as error:
            assert isinstance(error, KeywrightError), repr(error)  # noqa: PT017
            assert isinstance(error, AggregationError) or not context.state  # noqa: PT017
            raise
        return context

    honest = shared_sum(RUN)
    parts = {name: blob(name, data) for name, data in honest.items()}
    right = honest[part]
    assert ask(parts).state
    odd = [b"", b"x", right[:-1], right + b"x", right[::-1], bytes(len(right))]
    odd += [
        b"null",
        b"[]",
        b"[[]]",
        b'[["w", "6", "float64"]]',
        b'[["w", [1e400], "float64"]]',
        b'[["w", [-6], "x"]]',
    ]
    odd += [
        right[:place] + bytes([right[place] ^ 1]) + right[place + 1 :] for place in range(0, len(right), 7)
    ][:200]
    for data in odd:
        with pytest.raises(KeywrightError):
            ask(parts | {part: blob(part, data)})
    with pytest.raises(KeywrightError):
        ask(parts | {part: Array("uint8", (1,), "other", right)})


def test_a_server_does_not_end_all_rounds_by_a_large_number(clients: Clients) -> None:
    _, state = clients.steps["train"]
    clients.contexts[0].state, kept = copy.deepcopy(state), clients.contexts[0].state
    try:
        for number in (MAX_STEP + 1, 2**32 - 1):
            with pytest.raises(AggregationError, match="would end all rounds between"):
                clients.train(0, {"server-round": number})
            assert clients.contexts[0].state == state
        for number in (MAX_STEP, 2 * MAX_STEP):
            assert clients.train(0, {"server-round": number})
    finally:
        clients.contexts[0].state = kept
