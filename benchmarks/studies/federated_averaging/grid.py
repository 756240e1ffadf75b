"""Flower's messages between a server and clients of this process: time of the clients, bytes sent."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass

from flwr.app import Message
from flwr.clientapp import ClientApp
from harness.measurement.clock import Seconds, timed
from keywright.federated.loopback import LoopbackGrid, parsed


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


class MeasuredGrid(LoopbackGrid):
    """Calls a ClientApp for every node, and measures.

    Attributes:
        steps: what every message took.
    """

    def __init__(self, apps: dict[int, ClientApp]) -> None:
        super().__init__(apps)
        self.steps: list[Step] = []

    def deliver(self, node: int, message: Message, data: bytes) -> Message:
        answer, seconds = timed(self.answer, node, data)
        self.steps.append(Step(node, asked_for(message), seconds, len(data), len(answer)))
        return parsed(answer)
