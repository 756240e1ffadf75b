"""The server of a threshold run: forwards messages, adds ciphertexts, learns averages."""

import os
import time
from collections.abc import Iterable, Sequence
from logging import INFO, WARNING
from pathlib import Path
from typing import Any

from flwr.app import Array, ArrayRecord, ConfigRecord, Message, MessageType, MetricRecord, RecordDict
from flwr.common.logger import log
from flwr.serverapp import Grid

from keywright._core import ThresholdKey, ThresholdParameters
from keywright.errors import AggregationError, KeywrightError
from keywright.federated.array_layout import ArrayLayout
from keywright.federated.encoding import Encoding
from keywright.federated.encryption_mod import to_numpy
from keywright.federated.records import UPDATE, blob_bytes, only_arrays
from keywright.federated.strategy import FilteringFedAvg

from .messages import is_agreement_key
from .protocol import DEAL, DECRYPT, JOIN, KEY_BYTES, OPEN, Claims, Roster, threshold_parameters
from .state import ServerState


class ThresholdFedAvg(FilteringFedAvg):
    """Federated averaging in which any ``threshold`` clients together, and no fewer, decrypt the sum of a
    round.

    The first round begins with a set-up among all connected clients: three exchanges. Clients that fail in it
    are left out, and it starts again with the others. After every round, ``threshold`` of the clients that
    were asked to train in it decrypt the sum. A client that vanishes is replaced by another at the cost of
    one more exchange, as long as enough are left and at most `ThresholdParameters.MAX_SETS` times. The result
    is the plain average, which the server learns and may tell others. While all parties follow the protocol,
    nobody learns a single update unless ``threshold`` clients collude. docs/explanation/threshold.md
    describes what a party that deviates can do.

    Thread safety: one thread at a time, as Flower's server calls it.

    Args:
        encoding: the declaration that clients and server share.
        threshold: clients that decrypt together; more than could ever collude, and no more than train in a
            round.
        exchange_timeout: seconds to wait for the clients in one exchange of the protocol.
        state: file for roster, session and round, so that a restarted server continues with the keys of its
            clients (which keep theirs in a folder). It contains no secret.
        **options: options of `flwr.serverapp.strategy.FedAvg`. `min_available_nodes` is the number of clients
            for which the set-up waits.

    Raises:
        ParameterError: no modulus is large enough for the sums of that many clients and bits; the file
            belongs to another declaration.
        FormatError: the file is malformed.
    """

    def __init__(
        self,
        encoding: Encoding,
        threshold: int,
        exchange_timeout: float = 600,
        state: str | os.PathLike[str] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(encoding, **options)
        threshold_parameters(encoding, max(threshold, self.min_available_nodes), threshold, 1)
        self.threshold = threshold
        self.exchange_timeout = exchange_timeout
        self._grid: Grid | None = None
        self._roster: Roster | None = None
        self._parameters: Any = None
        self._count = 0
        # Rounds of earlier runs with the same keys, and the last one. Clients answer only in increasing
        # rounds.
        self._rounds = self._last = 0
        self._file = None if state is None else ServerState(Path(state), encoding, threshold)
        if self._file is not None and (kept := self._file.load()) is not None:
            self._roster, self._session, self._count, self._last = kept
            self._parameters = threshold_parameters(encoding, len(self._roster.nodes), threshold, self._count)

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Send the model to the clients of a round; make the keys before the first.

        Raises:
            AggregationError: fewer clients than the threshold complete the set-up, or train in the first
                round; the model has another number of values than the keys were made for.
            ParameterError: no modulus is large enough for the sums of that many values.
        """
        self._grid = grid
        layout = ArrayLayout.of(to_numpy(arrays))
        if server_round == 1:
            # Another run with the keys of this one.
            self._rounds = self._last
        number = self._last = server_round + self._rounds
        # Nodes are sampled first: sampling waits until enough are connected.
        messages = list(super().configure_train(number, arrays, config, grid))
        if self._roster is None:
            self._set_up(layout, list(grid.get_node_ids()))
        elif self._count != layout.count:
            raise AggregationError(
                f"the model has {layout.count} values, but the keys were made for {self._count}",
                code="number_of_values",
                found=layout.count,
                expected=self._count,
            )
        self._layout = layout
        members = self._roster.nodes if self._roster else ()
        messages = [message for message in messages if message.metadata.dst_node_id in members]
        self._require_capacity(messages, self.encoding.max_clients)
        if len(messages) < self.threshold:
            what = f"{len(messages)} clients train in round {number}, but {self.threshold} must decrypt it"
            if server_round == 1:
                raise AggregationError(
                    f"{what}; raise fraction_train or lower the threshold",
                    code="too_few",
                    found=len(messages),
                    expected=self.threshold,
                )
            log(WARNING, "%s: no client is asked", what)
            return []
        self._keep(number)
        return messages

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """Add the valid updates of a round and decrypt the sum."""
        return super().aggregate_train(server_round + self._rounds, replies)

    def _keep(self, number: int) -> None:
        if self._file is not None and self._roster is not None:
            self._file.store(self._roster, self._session, self._count, number)

    def _set_up(self, layout: ArrayLayout, nodes: list[int]) -> None:
        while True:
            if len(nodes) < max(self.threshold, 2):
                raise AggregationError(
                    f"{len(nodes)} clients are left for the set-up, but the threshold is {self.threshold}",
                    code="set_up",
                    found=len(nodes),
                    expected=self.threshold,
                )
            left = self._try_set_up(layout, sorted(nodes))
            if left is None:
                return
            log(
                WARNING,
                "%d clients failed in the set-up; it starts again without them",
                len(nodes) - len(left),
            )
            nodes = left

    def _try_set_up(self, layout: ArrayLayout, nodes: list[int]) -> list[int] | None:
        """Try the set-up once; returns None if it succeeds, else the clients that did their part."""
        start = time.perf_counter()
        # Check this before any client is asked: the declaration may not fit.
        parameters = threshold_parameters(self.encoding, len(nodes), self.threshold, layout.count)
        joined = self._exchange(JOIN, {node: {} for node in nodes})
        if len(joined) < len(nodes):
            return sorted(joined)
        keys: list[Any]
        nonces: list[Any]
        keys, nonces = ([joined[node].get(name) for node in nodes] for name in ("key", "nonce"))
        good = [
            n
            for n, k, r in zip(nodes, keys, nonces, strict=True)
            # Clients refuse a roster that has a key or a nonce twice.
            if is_agreement_key(k) and _whole(r) and keys.count(k) == nonces.count(r) == 1
        ]
        if len(good) < len(nodes):
            return good
        roster = Roster.of(nodes, keys, nonces)
        terms = {
            "nodes": list(roster.nodes),
            "keys": list(roster.keys),
            "nonces": list(roster.nonces),
            "threshold": self.threshold,
            "count": layout.count,
        }
        dealt = self._exchange(DEAL, dict.fromkeys(nodes, terms))
        good = [n for n in nodes if n in dealt and _dealt(dealt[n], len(nodes), parameters)]
        if len(good) < len(nodes):
            return good
        halves = [dealt[node]["half"] for node in nodes]
        session = roster.session(ThresholdKey.combine(parameters, roster.seed, halves).to_bytes())
        opened = self._exchange(
            OPEN,
            {
                node: {"halves": halves, "shares": [dealt[i]["shares"][j] for i in nodes]}
                for j, node in enumerate(nodes)
            },
        )
        good = [node for node in nodes if opened.get(node, {}).get("session") == session]
        if len(good) < len(nodes):
            return good
        self._roster, self._session = roster, session
        self._parameters, self._count = parameters, layout.count
        log(INFO, "threshold keys of %d clients made in %.1f s", len(nodes), time.perf_counter() - start)
        return None

    def _exchange(self, action: str, contents: dict[int, dict[str, Any]]) -> dict[int, dict[str, Any]]:
        """Send each node its values; returns the replies of the nodes that do their part."""
        if self._grid is None:
            raise AggregationError("there is no grid before a round is configured", code="set_up")
        messages = [
            Message(RecordDict({"keywright": ConfigRecord(values)}), node, f"{MessageType.QUERY}.{action}")
            for node, values in contents.items()
        ]
        replies = {}
        for reply in self._grid.send_and_receive(messages, timeout=self.exchange_timeout):
            node = reply.metadata.src_node_id
            if reply.has_error():
                log(WARNING, "client %d failed in %s: %s", node, action, reply.error.reason)
            elif node in contents and "keywright" in reply.content.config_records:
                replies[node] = dict(reply.content.config_records["keywright"])
        return replies

    def _parse(self, number: int, reply: Message, weight: int) -> tuple[bytes, int]:
        node = reply.metadata.src_node_id
        data = blob_bytes(only_arrays(reply.content)[1], UPDATE)
        claims, ciphertexts = Claims.split(data)
        claims.require(Claims(self._session, number, node, weight, self._count))
        # Check each alone, so that a damaged or short reply is found before the sum.
        self._parameters.check_update(ciphertexts, self._count)
        return ciphertexts, len(data)

    def _sum(self, number: int, accepted: dict[int, Any]) -> tuple[ArrayRecord | None, dict[str, float]]:
        if self._layout is None:
            return None, {}
        start = time.perf_counter()
        total = self._parameters.add([good.update for good in accepted.values()])
        seconds = time.perf_counter() - start
        start = time.perf_counter()
        integers, exchanges = self._decrypt(number, total, list(accepted))
        if integers is None:
            return None, {}
        averages = self.encoding.decode(integers, sum(good.weight for good in accepted.values()))
        arrays = {name: Array(value) for name, value in self._layout.unflatten(averages).items()}
        metrics = {
            "keywright-bytes-sum": len(total),
            "keywright-sum-seconds": seconds,
            "keywright-decrypt-seconds": time.perf_counter() - start,
            "keywright-decrypt-exchanges": exchanges,
        }
        return ArrayRecord(arrays), metrics

    def _decrypt(self, number: int, total: bytes, contributors: list[int]) -> tuple[Any, int]:
        """Return the integers of a sum and the number of exchanges. Of the clients asked to train, those that
        replied are asked first. A client that gives no valid answer is not asked again. If all answer and the
        parts do not match, one of them is wrong: each is left out in turn."""
        waiting = [*contributors, *sorted(self._asked - set(contributors))]
        exchanges = suspect = 0
        while len(waiting) >= self.threshold + min(suspect, 1) and exchanges < self._parameters.MAX_SETS:
            active = waiting[: self.threshold + min(suspect, 1)]
            if suspect:
                del active[(suspect - 1) % len(active)]
            exchanges += 1
            values = {"sum": total, "round": number, "active": active, "contributors": contributors}
            replies = self._exchange(DECRYPT, dict.fromkeys(active, values))
            parts = {node: replies[node].get("partial") for node in active if node in replies}
            lost = [node for node in active if not self._is_partial(number, node, parts.get(node))]
            waiting = [node for node in waiting if node not in lost]
            if lost:
                continue
            integers = self._finish([parts[node] for node in active], total, len(contributors))
            if integers is not None:
                return integers, exchanges
            suspect += 1
        log(
            WARNING,
            "round %d: not decrypted in %d exchanges; %d clients are left, %d are needed",
            number,
            exchanges,
            len(waiting),
            self.threshold,
        )
        return None, exchanges

    def _is_partial(self, number: int, node: int, part: object) -> bool:
        if not isinstance(part, bytes):
            return False
        try:
            self._parameters.check_partial(part, self._count)
        except KeywrightError as error:
            self._refuse(number, node, error)
            return False
        return True

    def _finish(self, parts: Sequence[Any], total: bytes, inputs: int) -> Any:
        try:
            return self._parameters.finish(total, parts, inputs, self._count)
        except AggregationError as error:
            log(WARNING, "the partial decryptions do not match: %s", error)
            return None


def _whole(value: object) -> bool:
    return isinstance(value, bytes) and len(value) == KEY_BYTES


def _dealt(values: dict[str, Any], parties: int, parameters: ThresholdParameters) -> bool:
    """Whether a reply has a half and a share for every party. Only its receiver can open a share."""
    half, shares = values.get("half"), values.get("shares")
    whole = isinstance(shares, list) and len(shares) == parties
    if not (whole and isinstance(half, bytes) and all(isinstance(share, bytes) for share in shares or ())):
        return False
    try:
        parameters.check_half(half)
    except KeywrightError:
        return False
    return True
