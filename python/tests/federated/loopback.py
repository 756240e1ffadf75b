"""Flower in one process for tests: replies that change or get lost, apps that fail."""

from collections.abc import Callable
from typing import Any

import numpy as np
from flwr.app import Array, ArrayRecord, Context, Error, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from keywright.federated.loopback import LoopbackGrid

Tamper = Callable[[int, Message], Message | None]
Note = Callable[[int, Message], None]


class TamperedGrid(LoopbackGrid):
    """Nodes whose failures become replies, as in Flower.

    Args:
        apps: the app of every node.
        tamper: changes a reply in transit, or returns None to lose it.
        note: called with every message to a node.
    """

    def __init__(
        self, apps: dict[int, ClientApp], tamper: Tamper | None = None, note: Note | None = None
    ) -> None:
        super().__init__(apps)
        self.tamper: Tamper = tamper or (lambda _, reply: reply)
        self.note: Note = note or (lambda _, message: None)

    def call(self, node: int, message: Message) -> Message:
        self.note(node, message)
        try:
            return super().call(node, message)
        except Exception as error:  # noqa: BLE001 (what Flower does with an app that raises)
            return Message(Error(code=0, reason=f"{type(error).__name__}: {error}"), reply_to=message)

    def deliver(self, node: int, message: Message, data: bytes) -> Message | None:
        reply = super().deliver(node, message, data)
        return None if reply is None else self.tamper(node, reply)


def app(
    mods: list[Any], train: Callable[[dict[str, Any], int], dict[str, Any]], samples: Callable[[int], Any]
) -> ClientApp:
    """Return a ClientApp without encryption: `train` maps arrays to arrays."""
    client = ClientApp(mods=mods)

    @client.train()
    def _train(message: Message, context: Context) -> Message:
        record = message.content.array_records["arrays"]
        arrays = train({key: np.array(value.numpy()) for key, value in record.items()}, context.node_id)
        content = RecordDict(
            {
                "arrays": ArrayRecord({key: Array(value) for key, value in arrays.items()}),
                "metrics": MetricRecord({"num-examples": samples(context.node_id), "loss": 0.5}),
            }
        )
        return Message(content, reply_to=message)

    @client.evaluate()
    def _evaluate(message: Message, context: Context) -> Message:
        record = message.content.array_records["arrays"]
        total = float(sum(np.abs(value.numpy()).sum() for value in record.values()))
        content = RecordDict(
            {"metrics": MetricRecord({"num-examples": samples(context.node_id), "total": total})}
        )
        return Message(content, reply_to=message)

    return client
