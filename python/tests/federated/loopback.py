"""A grid of Flower that calls ClientApps in this process: messages are serialised on the way, as between
machines."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from flwr.app import Array, ArrayRecord, Context, Error, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.common.serde import message_from_proto, message_to_proto
from flwr.serverapp import Grid
from flwr.supercore.run import Run
from flwr.supercore.task_identity import TaskIdentity

Tamper = Callable[[int, Message], Message | None]
Note = Callable[[int, Message], None]
RUN_ID = 41


class LoopbackGrid(Grid):
    """Nodes with numbers of their own, one context each.

    Args:
        apps: the app of every node.
        tamper: what happens to a reply on its way, None if it is lost.
        note: is told of every message to a node.
    """

    def __init__(
        self, apps: dict[int, ClientApp], tamper: Tamper | None = None, note: Note | None = None
    ) -> None:
        TaskIdentity.run_id, TaskIdentity.node_id, TaskIdentity.task_id = (
            RUN_ID,
            1,
            1,
        )  # as a ServerApp's process
        self.apps = apps
        self.tamper: Tamper = tamper or (lambda _, reply: reply)
        self.note: Note = note or (lambda _, message: None)
        self.contexts = {node: Context(RUN_ID, node, {}, RecordDict(), {}) for node in apps}
        self.replies: list[Message] = []

    def set_run(self, run: Run) -> None:
        raise NotImplementedError  # abstract in Grid; the strategies call send_and_receive alone

    @property
    def run(self) -> Run:
        return Run.create_empty(run_id=RUN_ID)

    def create_message(self, *args: Any, **options: Any) -> Message:
        raise NotImplementedError  # abstract in Grid; the strategies call send_and_receive alone

    def get_node_ids(self) -> Iterable[int]:
        return list(self.apps)

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        raise NotImplementedError  # abstract in Grid; the strategies call send_and_receive alone

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        raise NotImplementedError  # abstract in Grid; the strategies call send_and_receive alone

    def send_and_receive(
        self, messages: Iterable[Message], *, timeout: float | None = None
    ) -> Iterable[Message]:
        replies = []
        for message in messages:
            node = message.metadata.dst_node_id
            wire = message_to_proto(message)
            wire.metadata.run_id = RUN_ID
            incoming = message_from_proto(type(wire).FromString(wire.SerializeToString()))
            self.note(node, incoming)
            try:
                reply = self.apps[node](incoming, self.contexts[node])
            except Exception as error:  # noqa: BLE001 (what Flower does with an app that raises)
                reply = Message(Error(code=0, reason=f"{type(error).__name__}: {error}"), reply_to=incoming)
            answer = message_to_proto(reply)
            answer.metadata.src_node_id = node
            arrived = self.tamper(
                node, message_from_proto(type(answer).FromString(answer.SerializeToString()))
            )
            if arrived is not None:
                replies.append(arrived)
        self.replies = replies
        return replies


def app(
    mods: list[Any], train: Callable[[dict[str, Any], int], dict[str, Any]], samples: Callable[[int], Any]
) -> ClientApp:
    """A ClientApp that knows nothing of encryption: `train` maps arrays to arrays."""
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
