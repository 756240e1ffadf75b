"""The server's side: adds encrypted updates without any key."""

import time
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from logging import WARNING
from typing import Any

from flwr.app import ArrayRecord, ConfigRecord, Message, MetricRecord
from flwr.common.logger import log
from flwr.serverapp import Grid
from flwr.serverapp.strategy import FedAvg

from keywright._core import EncryptedSum, EncryptedUpdate
from keywright.errors import AggregationError, FormatError, KeywrightError, ParameterError
from keywright.federated.array_layout import ArrayLayout
from keywright.federated.encoding import Encoding
from keywright.federated.encryption_mod import to_numpy
from keywright.federated.records import (
    LAYOUT,
    SUM,
    TAG,
    UPDATE,
    blob,
    blob_bytes,
    check_update,
    is_encrypted,
    only_arrays,
    read_sum,
    session,
)
from keywright.federated.shared_key.tags import add_tags, require_tag


@dataclass(frozen=True)
class Refusal:
    """A reply that was left out of a sum.

    Attributes:
        round: the round in which it was sent.
        node: node number of its sender.
        error: the reason.
    """

    round: int
    node: int
    error: KeywrightError


@dataclass(frozen=True)
class Contribution:
    """A reply that counts.

    Attributes:
        update: the update to add.
        message: the reply.
        weight: its number of samples.
        size: bytes of the update.
    """

    update: Any
    message: Message
    weight: int
    size: int


class FilteringFedAvg(FedAvg):
    """Federated averaging that leaves out bad replies and continues; the common part of both ways of
    decrypting.

    Attributes:
        encoding: the declaration that clients and server share.
        refusals: every reply that was left out.
    """

    def __init__(self, encoding: Encoding, **options: Any) -> None:
        super().__init__(**options)
        self.encoding = encoding
        self.refusals: list[Refusal] = []
        self._layout: ArrayLayout | None = None
        self._session = b""
        self._asked: set[int] = set()

    @abstractmethod
    def _parse(self, number: int, reply: Message, weight: int) -> tuple[Any, int]:
        """Parse the update of a reply; returns it and its bytes. Raises KeywrightError if it must not be
        added now."""

    @abstractmethod
    def _sum(
        self, number: int, accepted: dict[int, Contribution]
    ) -> tuple[ArrayRecord | None, dict[str, float]]:
        """Return the next arrays for clients, and metrics; None if there is nothing."""

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """Add the valid updates of a round."""
        start = time.perf_counter()
        before = len(self.refusals)
        answered = [reply for reply in replies if not self._failed(server_round, reply)]
        accepted: dict[int, Contribution] = {}
        for reply in answered:
            node = reply.metadata.src_node_id
            try:
                good = self._accept(server_round, reply, accepted)
            except KeywrightError as error:
                self._refuse(server_round, node, error)
            else:
                accepted[node] = good
        usual = self._of_one_kind(server_round, {node: good.message for node, good in accepted.items()})
        accepted = {node: accepted[node] for node in usual}
        seconds = time.perf_counter() - start
        if len(accepted) < self.encoding.min_clients:
            log(
                WARNING,
                "%d usable updates, but %d are needed: the model stays unchanged",
                len(accepted),
                self.encoding.min_clients,
            )
            return None, None
        arrays, measured = self._sum(server_round, accepted)
        if arrays is None:
            return None, None
        contents = [good.message.content for good in accepted.values()]
        metrics = self.train_metrics_aggr_fn(contents, self.weighted_by_key)
        metrics["keywright-updates"] = len(accepted)
        metrics["keywright-refused"] = len(self.refusals) - before
        metrics["keywright-missing"] = len(self._asked) - len(answered)
        metrics["keywright-bytes-received"] = sum(good.size for good in accepted.values())
        metrics["keywright-parse-seconds"] = seconds
        for name, value in measured.items():
            metrics[name] = value
        return arrays, metrics

    def aggregate_evaluate(self, server_round: int, replies: Iterable[Message]) -> MetricRecord | None:
        """Average the metrics of the replies that have them."""
        good = {}
        for reply in replies:
            if self._failed(server_round, reply):
                continue
            try:
                self._weight(reply)
            except KeywrightError as error:
                self._refuse(server_round, reply.metadata.src_node_id, error)
            else:
                good[reply.metadata.src_node_id] = reply
        usual = self._of_one_kind(server_round, good)
        return super().aggregate_evaluate(server_round, list(usual.values()))

    def _require_capacity(self, messages: Sequence[Message], capacity: int) -> None:
        """Note which clients are asked. Raises ParameterError if the modulus has no room for so many."""
        if len(messages) > capacity:
            raise ParameterError(
                f"{len(messages)} clients are asked for updates, but the modulus has room for {capacity}; "
                "declare more clients or fewer bits, or sample fewer clients",
                what="clients",
                value=len(messages),
                maximum=capacity,
            )
        self._asked = {message.metadata.dst_node_id for message in messages}

    def _failed(self, number: int, reply: Message) -> bool:
        if reply.has_error():
            node = reply.metadata.src_node_id
            log(WARNING, "round %d: client %d failed: %s", number, node, reply.error.reason)
        return reply.has_error()

    def _refuse(self, number: int, node: int, error: KeywrightError) -> None:
        log(WARNING, "round %d: the reply of client %d was refused: %s", number, node, error)
        self.refusals.append(Refusal(number, node, error))

    def _weight(self, reply: Message) -> int:
        records = list(reply.content.metric_records.values())
        if len(records) != 1 or self.weighted_by_key not in records[0]:
            raise FormatError(f"the reply lacks the metric {self.weighted_by_key!r}", code="contents")
        return self.encoding.require_weight(records[0][self.weighted_by_key])

    def _accept(self, number: int, reply: Message, accepted: dict[int, Contribution]) -> Contribution:
        node = reply.metadata.src_node_id
        if node not in self._asked or node in accepted:
            what = "twice" if node in accepted else "without being asked"
            raise AggregationError(f"client {node} replies {what}", code="duplicate", client=node)
        weight = self._weight(reply)
        update, size = self._parse(number, reply, weight)
        return Contribution(update, reply, weight, size)

    def _of_one_kind(self, number: int, replies: dict[int, Message]) -> dict[int, Message]:
        """Return the replies that share the most frequent metric names, lengths and record name; others
        cannot be averaged with them."""

        def shape(reply: Message) -> frozenset[tuple[str, int]]:
            record, metrics = next(iter(reply.content.metric_records.items()))
            sizes = ((name, len(v) if isinstance(v, list) else -1) for name, v in metrics.items())
            return frozenset([*sizes, (f"record {record}", 0)])

        if not replies:
            return replies
        usual = Counter(map(shape, replies.values())).most_common(1)[0][0]
        for node, reply in replies.items():
            if shape(reply) != usual:
                results = sorted(shape(reply))
                error = FormatError(
                    "the metrics of the reply differ from those of most replies",
                    code="contents",
                    found=results,
                )
                self._refuse(number, node, error)
        return {node: reply for node, reply in replies.items() if shape(reply) == usual}


class EncryptedFedAvg(FilteringFedAvg):
    """Federated averaging of updates that the server cannot read.

    From the second round on, clients get an encrypted sum as the model, and so is the result of the run.
    `decrypt_arrays` decrypts it with the key. A reply that is damaged, replayed, of another client or of
    another shape is refused, and the round continues. A round with fewer than ``encoding.min_clients`` valid
    replies leaves the model unchanged. Refusals are logged and collected in `refusals`.

    The metrics of a round gain ``keywright-updates``, ``keywright-refused``, ``keywright-missing``,
    ``keywright-bytes-received``, ``keywright-bytes-sum``, ``keywright-parse-seconds`` and
    ``keywright-sum-seconds``.

    Thread safety: one thread at a time, as Flower's server calls it.

    Args:
        encoding: the declaration that clients and server share.
        **options: options of `flwr.serverapp.strategy.FedAvg`.
    """

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Send the model to the clients of a round.

        Raises:
            ParameterError: the modulus has no room for that many clients.
        """
        self._layout = (
            read_sum(arrays, self.encoding)[1] if is_encrypted(arrays) else ArrayLayout.of(to_numpy(arrays))
        )
        self._session = session(self.encoding, self._layout, grid.run.run_id)
        messages = list(super().configure_train(server_round, arrays, config, grid))
        self._require_capacity(messages, self.encoding.capacity)
        return messages

    def _parse(self, number: int, reply: Message, weight: int) -> tuple[tuple[EncryptedUpdate, bytes], int]:
        record = only_arrays(reply.content)[1]
        data = blob_bytes(record, UPDATE)
        update = EncryptedUpdate.from_bytes(data, self.encoding.parameters)
        count = self._layout.count if self._layout else 0
        node = reply.metadata.src_node_id
        check_update(update, session=self._session, round=number, client=node, weight=weight, count=count)
        tag = blob_bytes(record, TAG)
        require_tag(tag, node)
        return (update, tag), len(data) + len(tag)

    def _sum(
        self, number: int, accepted: dict[int, Contribution]
    ) -> tuple[ArrayRecord | None, dict[str, float]]:
        if self._layout is None:
            return None, {}
        start = time.perf_counter()
        updates, tags = zip(*(good.update for good in accepted.values()), strict=True)
        total, tag = EncryptedSum.of(updates, self.encoding.parameters), add_tags(tags)
        seconds = time.perf_counter() - start
        data = total.to_bytes()
        parts = {SUM: data, LAYOUT: self._layout.to_bytes(), TAG: tag}
        record = ArrayRecord({name: blob(name, part) for name, part in parts.items()})
        return record, {"keywright-bytes-sum": len(data), "keywright-sum-seconds": seconds}
