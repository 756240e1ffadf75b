"""Four clients of Flower in one process, and a server that decrypts with a threshold of them."""

from pathlib import Path
from typing import Any

import keywright as kw
import numpy as np
import pytest
from flwr.app import Array, ArrayRecord, Message
from keywright.federated import Encoding, ThresholdFedAvg, ThresholdMod
from keywright.federated.threshold.protocol import DECRYPT, OPEN
from numpy.typing import NDArray
from tests.federated.loopback import Tamper, TamperedGrid, app

NODES = (11, 22, 33, 44)
RECORD = "keywright.threshold"
ENCODING = Encoding(bound=4.0, max_clients=4, max_weight=500)
START = {"w": np.linspace(-1, 1, 210, dtype=np.float64).reshape(3, 70), "b": np.zeros(2)}


def train(arrays: dict[str, NDArray[Any]], node: int) -> dict[str, NDArray[Any]]:
    return {name: array * 0.5 + node / 50 for name, array in arrays.items()}


class Federation:
    """A threshold run of several rounds."""

    def __init__(
        self,
        *,
        rounds: int = 1,
        threshold: int = 3,
        client_threshold: int = 0,
        tamper: Tamper | None = None,
        nodes: tuple[int, ...] = NODES,
        folder: Path | None = None,
        start: dict[str, NDArray[Any]] = START,
        fails: bool = False,
        grids: list[TamperedGrid] | None = None,
        **options: Any,
    ) -> None:
        self.asked: list[str] = []
        self.replies: dict[tuple[str, int], Message] = {}
        # The server's last message to a node in each step of the protocol, during the run.
        self.running = True
        # The state of every client after it had dealt.
        self.dealt: dict[int, dict[str, Any]] = {}
        self.messages: dict[tuple[str, int], dict[str, Any]] = {}

        def watch(node: int, reply: Message) -> Message | None:
            action = reply.metadata.message_type.partition(".")[2] or reply.metadata.message_type
            self.asked.append(action)
            self.replies[action, node] = reply
            return reply if tamper is None else tamper(node, reply)

        apps = {}
        for node in nodes:
            own = None if folder is None else folder / str(node)
            mod = ThresholdMod(ENCODING, client_threshold or threshold, folder=own)
            apps[node] = app([mod], train, lambda node: node * 10)
            mod.register(apps[node])

        def note(node: int, message: Message) -> None:
            config = message.content.config_records.get("keywright")
            if message.metadata.message_type == f"query.{OPEN}":
                record = self.grid.contexts[node].state.config_records.get(RECORD)
                self.dealt[node] = {} if record is None else dict(record)
            if config is not None and self.running:
                self.messages[message.metadata.message_type.partition(".")[2], node] = dict(config)

        self.grid = TamperedGrid(apps, watch, note)
        if grids is not None:
            grids.append(self.grid)
        state = None if folder is None else folder / "server.json"
        self.strategy = ThresholdFedAvg(ENCODING, threshold, state=state, **options)
        arrays = ArrayRecord({name: Array(value) for name, value in start.items()})
        if fails:
            with pytest.raises(kw.errors.AggregationError):
                self.strategy.start(self.grid, arrays, num_rounds=rounds)
        else:
            self.result = self.strategy.start(self.grid, arrays, num_rounds=rounds)
        self.running = False

    def idle(self, number: int) -> int:
        """Return a node that was asked to train in a round and not needed to decrypt it."""
        return next(n for n in NODES if self.messages.get((DECRYPT, n), {}).get("round") != number)

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
