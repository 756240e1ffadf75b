"""A Flower grid within one process, to try a ClientApp and a strategy without a SuperLink."""

from collections.abc import Iterable
from typing import Any

from flwr.app import Context, Message, RecordDict
from flwr.clientapp import ClientApp
from flwr.common.serde import message_from_proto, message_to_proto
from flwr.proto.message_pb2 import Message as Wire
from flwr.serverapp import Grid
from flwr.supercore.run import Run
from flwr.supercore.task_identity import TaskIdentity

RUN_ID = 41
"""The run of all messages."""


def parsed(data: bytes) -> Message:
    """Parse a message from its bytes."""
    return message_from_proto(Wire.FromString(data))


ALONE = "a loopback delivers only by `send_and_receive`, which strategies and workflows call"


class LoopbackGrid(Grid):
    """Calls the ClientApp of every node, one after the other. Messages are serialised, as between machines.

    Exceptions of an app propagate to the caller.

    Args:
        apps: app of every node, by its number.

    Attributes:
        apps: as given.
        contexts: the state of every node between messages.
    """

    def __init__(self, apps: dict[int, ClientApp]) -> None:
        # As in the process of a ServerApp.
        TaskIdentity.run_id, TaskIdentity.node_id, TaskIdentity.task_id = RUN_ID, 1, 1
        self.apps = apps
        self.contexts = {node: Context(RUN_ID, node, {}, RecordDict(), {}) for node in apps}

    def call(self, node: int, message: Message) -> Message:
        """Return the reply of a node's app."""
        return self.apps[node](message, self.contexts[node])

    def answer(self, node: int, data: bytes) -> bytes:
        """Parse a message on a node and return its serialised reply."""
        reply = message_to_proto(self.call(node, parsed(data)))
        reply.metadata.src_node_id = node
        return bytes(reply.SerializeToString())

    def deliver(self, node: int, message: Message, data: bytes) -> Message | None:
        """Deliver one message to a node. Returns the reply, None if it is lost."""
        return parsed(self.answer(node, data))

    def send_and_receive(
        self, messages: Iterable[Message], *, timeout: float | None = None
    ) -> Iterable[Message]:
        """Return the replies that arrive."""
        replies = []
        for message in messages:
            wire = message_to_proto(message)
            wire.metadata.run_id = RUN_ID
            reply = self.deliver(message.metadata.dst_node_id, message, wire.SerializeToString())
            if reply is not None:
                replies.append(reply)
        return replies

    def get_node_ids(self) -> Iterable[int]:
        return list(self.apps)

    @property
    def run(self) -> Run:
        """Return a run without an app of its own."""
        return Run.create_empty(run_id=RUN_ID)

    # Abstract in Grid.

    def set_run(self, run: Run) -> None:
        raise TypeError(ALONE)

    def create_message(self, *args: Any, **options: Any) -> Message:
        raise TypeError(ALONE)

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        raise TypeError(ALONE)

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        raise TypeError(ALONE)
