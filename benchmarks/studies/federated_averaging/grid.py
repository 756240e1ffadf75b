"""Flower's messages between a server and clients of this process: time of the clients, bytes sent."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from flwr.app import Context, Message, RecordDict
from flwr.clientapp import ClientApp
from flwr.common.serde import message_from_proto, message_to_proto
from flwr.proto.message_pb2 import Message as Wire
from flwr.serverapp import Grid
from flwr.supercore.run import Run
from flwr.supercore.task_identity import TaskIdentity
from harness.clock import Seconds, timed

RUN_ID = 41


@dataclass(frozen=True)
class Step:
    """One message to a client and its reply.

    Attributes:
        node: the client.
        exchange: what the message asks for.
        seconds: of the client, with parsing and serialisation.
        down: bytes of the message.
        up: bytes of the reply.
    """

    node: int
    exchange: str
    seconds: Seconds
    down: int
    up: int


@dataclass(frozen=True)
class Exchange:
    """What an exchange takes one client, medians of those asked.

    Attributes:
        name: what it is for.
        clients: how many are asked.
        cpu_s: processor time.
        wall_s: time.
        up_bytes: bytes sent.
        down_bytes: bytes received.
    """

    name: str
    clients: int
    cpu_s: float
    wall_s: float
    up_bytes: float
    down_bytes: float

    @classmethod
    def of(cls, name: str, steps: list[list[Step]]) -> Exchange:
        """Of the steps of each client."""

        def median(value: Callable[[Step], float]) -> float:
            return statistics.median(sum(map(value, own)) for own in steps)

        return cls(
            name,
            len(steps),
            median(lambda step: step.seconds.cpu),
            median(lambda step: step.seconds.wall),
            median(lambda step: step.up),
            median(lambda step: step.down),
        )


def exchanges(steps: list[Step]) -> list[Exchange]:
    """Every exchange in its order."""
    names = dict.fromkeys(step.exchange for step in steps)
    return [Exchange.of(name, [[s] for s in steps if s.exchange == name]) for name in names]


def whole(steps: list[Step]) -> Exchange:
    """All exchanges of a client that is asked in each."""
    names, nodes = {step.exchange for step in steps}, dict.fromkeys(step.node for step in steps)
    of = [[step for step in steps if step.node == node] for node in nodes]
    return Exchange.of("all", [own for own in of if {step.exchange for step in own} == names])


def asked_for(message: Message) -> str:
    """The exchange of a message: SecAgg+'s stage, else the action."""
    for record in message.content.config_records.values():
        if isinstance(stage := record.get("stage"), str):
            return stage
    return message.metadata.message_type.rpartition(".")[2].removeprefix("keywright_")


class MeasuredGrid(Grid):
    """Calls a ClientApp for every node. What goes between them is serialised, as between machines.

    Args:
        apps: of every node.

    Attributes:
        steps: what every message took.
    """

    def __init__(self, apps: dict[int, ClientApp]) -> None:
        # As in the process of a ServerApp.
        TaskIdentity.run_id, TaskIdentity.node_id, TaskIdentity.task_id = RUN_ID, 1, 1
        self.apps = apps
        self.contexts = {node: Context(RUN_ID, node, {}, RecordDict(), {}) for node in apps}
        self.steps: list[Step] = []

    def _answer(self, node: int, data: bytes) -> bytes:
        """What a client does with the bytes of a message."""
        message = message_from_proto(Wire.FromString(data))
        reply = message_to_proto(self.apps[node](message, self.contexts[node]))
        reply.metadata.src_node_id = node
        return bytes(reply.SerializeToString())

    def send_and_receive(
        self, messages: Iterable[Message], *, timeout: float | None = None
    ) -> Iterable[Message]:
        replies = []
        for message in messages:
            node = message.metadata.dst_node_id
            wire = message_to_proto(message)
            wire.metadata.run_id = RUN_ID
            data = wire.SerializeToString()
            answer, seconds = timed(self._answer, node, data)
            self.steps.append(Step(node, asked_for(message), seconds, len(data), len(answer)))
            replies.append(message_from_proto(Wire.FromString(answer)))
        return replies

    def get_node_ids(self) -> Iterable[int]:
        return list(self.apps)

    @property
    def run(self) -> Run:
        return Run.create_empty(run_id=RUN_ID)

    def set_run(self, run: Run) -> None:
        raise NotImplementedError  # abstract in Grid; strategies and workflows call `send_and_receive` alone

    def create_message(self, *args: Any, **options: Any) -> Message:
        raise NotImplementedError  # abstract in Grid; strategies and workflows call `send_and_receive` alone

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        raise NotImplementedError  # abstract in Grid; strategies and workflows call `send_and_receive` alone

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        raise NotImplementedError  # abstract in Grid; strategies and workflows call `send_and_receive` alone
