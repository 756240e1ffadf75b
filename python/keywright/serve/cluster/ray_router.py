"""The router of Ray Serve that knows keys: `routing`, told by Ray what is sent, what ended and who is there.

Every handle of the deployment has one, in the process that asks. What replicas say of themselves
(`Replica.record_routing_stats`) comes through Ray's controller.
"""

import time
from collections.abc import Mapping
from typing import Any

from ray.serve.request_router import PendingRequest, ReplicaID, RequestRouter, RunningReplica

from .routing import Router, Task


class KeyAwareRouter(RequestRouter):  # type: ignore[misc]
    """Ranks replicas for an order by when they would end it."""

    def initialize_state(self, **kwargs: Any) -> None:
        """Begin without replicas; called by Ray."""
        self._router = Router()
        self._believed: dict[str, Mapping[str, Any]] = {}

    def update_replicas(self, replicas: list[RunningReplica]) -> None:
        """Take over who is there."""
        super().update_replicas(replicas)
        there = {name_of(replica.replica_id): replica for replica in replicas}
        for name in self._router.replicas.keys() - there.keys():
            self._drop(name)
        for name, replica in there.items():
            self._router.add(name, int(replica.replica_metadata.get("budget", 0)))
            said = replica.routing_stats
            # Only what is new: what was sent since it was said is known better here.
            if said and said != self._believed.get(name):
                self._believed[name] = said
                self._router.believe(name, said["resident"])
                self._router.costs.learn(said["costs"])

    def on_replica_actor_died(self, replica_id: ReplicaID) -> None:
        """Send nothing there any more."""
        super().on_replica_actor_died(replica_id)
        self._drop(name_of(replica_id))

    async def choose_replicas(
        self, candidate_replicas: list[RunningReplica], pending_request: PendingRequest | None = None
    ) -> list[list[RunningReplica]]:
        """The replicas one by one, the best first; Ray takes the first that is not full."""
        if pending_request is None:
            return [candidate_replicas]
        by_name = {name_of(replica.replica_id): replica for replica in candidate_replicas}
        order = self._router.order(task_of(pending_request), time.monotonic())
        known = [by_name.pop(name) for name in order if name in by_name]
        return [[replica] for replica in (*known, *by_name.values())]

    def on_request_routed(
        self, pending_request: PendingRequest, replica_id: ReplicaID, result: object
    ) -> None:
        """An order is on its way."""
        name = name_of(replica_id)
        if name in self._router.replicas:
            ticket = pending_request.metadata.internal_request_id
            self._router.send(name, ticket, task_of(pending_request), time.monotonic())

    def on_request_completed(self, replica_id: ReplicaID, internal_request_id: str) -> None:
        """An order ended."""
        self._router.end(name_of(replica_id), internal_request_id, time.monotonic())

    def _drop(self, name: str) -> None:
        self._router.remove(name)
        self._believed.pop(name, None)


def name_of(replica: ReplicaID) -> str:
    """A replica's name in `routing`."""
    return str(replica.unique_id)


def task_of(request: PendingRequest) -> Task:
    """What the router has to know of an order."""
    order = request.args[0]
    return Task(order["keys"], order["bytes"], order["model"])
