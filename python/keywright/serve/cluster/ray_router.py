"""A router for Ray Serve that knows keys: it feeds `routing` with Ray's reports of orders and replicas.

Every handle of the deployment has one, in the process that sends requests. The reports of replicas
(`Replica.record_routing_stats`) come through Ray's controller.
"""

import time
from collections.abc import Mapping
from typing import Any

from ray.serve.request_router import PendingRequest, ReplicaID, RequestRouter, RunningReplica

from .routing import Router, Task


class KeyAwareRouter(RequestRouter):  # type: ignore[misc]
    """Ranks the replicas for an order by the time at which each would finish it."""

    def initialize_state(self, **kwargs: Any) -> None:
        """Start without replicas; called by Ray."""
        self._router = Router()
        self._believed: dict[str, Mapping[str, Any]] = {}

    def update_replicas(self, replicas: list[RunningReplica]) -> None:
        super().update_replicas(replicas)
        there = {name_of(replica.replica_id): replica for replica in replicas}
        for name in self._router.replicas.keys() - there.keys():
            self._drop(name)
        for name, replica in there.items():
            self._router.add(name, int(replica.replica_metadata.get("budget", 0)))
            said = replica.routing_stats
            # Use new reports only: for orders sent since the last report, this router knows more.
            if said and said != self._believed.get(name):
                self._believed[name] = said
                self._router.believe(name, said["resident"])
                self._router.costs.learn(said["costs"])

    def on_replica_actor_died(self, replica_id: ReplicaID) -> None:
        """Stop sending to a replica."""
        super().on_replica_actor_died(replica_id)
        self._drop(name_of(replica_id))

    async def choose_replicas(
        self, candidate_replicas: list[RunningReplica], pending_request: PendingRequest | None = None
    ) -> list[list[RunningReplica]]:
        """Return the replicas one by one, the best first; Ray takes the first that is not full."""
        if pending_request is None:
            return [candidate_replicas]
        by_name = {name_of(replica.replica_id): replica for replica in candidate_replicas}
        order = self._router.order(task_of(pending_request), time.monotonic())
        known = [by_name.pop(name) for name in order if name in by_name]
        return [[replica] for replica in (*known, *by_name.values())]

    def on_request_routed(
        self, pending_request: PendingRequest, replica_id: ReplicaID, result: object
    ) -> None:
        """Note that an order was sent."""
        name = name_of(replica_id)
        if name in self._router.replicas:
            ticket = pending_request.metadata.internal_request_id
            self._router.send(name, ticket, task_of(pending_request), time.monotonic())

    def on_request_completed(self, replica_id: ReplicaID, internal_request_id: str) -> None:
        """Note that an order ended."""
        self._router.end(name_of(replica_id), internal_request_id, time.monotonic())

    def _drop(self, name: str) -> None:
        self._router.remove(name)
        self._believed.pop(name, None)


def name_of(replica: ReplicaID) -> str:
    """Return the name of a replica in `routing`."""
    return str(replica.unique_id)


def task_of(request: PendingRequest) -> Task:
    """Return the description of an order for the router."""
    order = request.args[0]
    return Task(order["keys"], order["bytes"], order["model"])
