"""The client's side: decrypts the incoming model and encrypts the outgoing one."""

import hashlib
import logging
import os
from pathlib import Path
from typing import Any

import numpy as np
from flwr.app import Array, ArrayRecord, Context, Message, MessageType
from flwr.clientapp.typing import ClientAppCallable
from numpy.typing import NDArray

from keywright._copies import Unpicklable
from keywright._core import SumKey
from keywright.errors import AggregationError, EncodeError, FormatError, ParameterError
from keywright.federated.array_layout import ArrayLayout
from keywright.federated.encoding import Encoding
from keywright.federated.records import (
    TAG,
    UPDATE,
    blob,
    blob_bytes,
    is_encrypted,
    only_arrays,
    read_arrays,
    read_sum,
    server_round,
    session,
)
from keywright.federated.shared_key.opened_sums import OpenedSums
from keywright.federated.shared_key.tags import open_sum, require_form, tag_update

LOG = logging.getLogger(__name__)


class EncryptionMod(Unpicklable, elsewhere="make it in the module of the ClientApp, which processes import"):
    """A mod for a ClientApp whose server runs `EncryptedFedAvg`.

    It must be the last mod that touches arrays: later mods see ciphertexts. The app itself is unchanged and
    takes and returns plain arrays. No metric is added to a reply, because counts and times of an update are
    facts about its values, and the server reads metrics. An update with a value above the bound is not sent,
    unless the declaration says that values are clipped.

    Thread safety: one thread at a time.

    Args:
        key: the secret key that all clients share.
        encoding: the declaration that clients and server share.
        weighted_by_key: metric that holds the number of samples.
        folder: a folder for this client only, in which it remembers the sums that it opened. The default is
            Flower's state of the run, which suits simulations only: Flower sends a reply before it stores the
            state, and forgets it after the run.

    Raises:
        MismatchError: the key belongs to another declaration.
    """

    def __init__(
        self,
        key: SumKey,
        encoding: Encoding,
        weighted_by_key: str = "num-examples",
        folder: str | os.PathLike[str] | None = None,
    ) -> None:
        require_same(key, encoding)
        self.key = key
        self._opened = OpenedSums(None if folder is None else Path(folder))
        self.encoding = encoding
        self.weighted_by_key = weighted_by_key

    def __call__(self, message: Message, context: Context, call_next: ClientAppCallable) -> Message:
        """Handle a message. An exception becomes an error reply of Flower, and the round continues without
        it."""
        kind = message.metadata.message_type.partition(".")[0]
        if kind not in (MessageType.TRAIN, MessageType.EVALUATE):
            return call_next(message, context)
        name, record = only_arrays(message.content)
        number = server_round(dict(message.content.config_records))
        if is_encrypted(record):
            layout, arrays = self._open(record, context, message.metadata.run_id, number)
            message.content[name] = ArrayRecord({key: Array(array) for key, array in arrays.items()})
        else:
            layout = ArrayLayout.of(read_arrays(record))
        reply = call_next(message, context)
        if kind == MessageType.TRAIN and not reply.has_error():
            self._encrypt(reply, layout, context.node_id, number, message.metadata.run_id)
        return reply

    def _open(
        self, record: ArrayRecord, context: Context, run_id: int, number: int
    ) -> tuple[ArrayLayout, dict[str, NDArray[Any]]]:
        total, layout = read_sum(record, self.encoding)
        expected = session(self.encoding, layout, run_id)
        if total.session != expected:
            raise AggregationError(
                "the sum belongs to another run or declaration",
                code="session",
                found=total.session,
                expected=expected,
            )
        if total.round > number:
            raise AggregationError(
                f"the sum is from round {total.round}, but this is round {number}",
                code="round",
                found=total.round,
                expected=number,
            )
        tag = blob_bytes(record, TAG)
        # A malformed tag must not take the place of the round's sum.
        require_form(tag, len(total.contributors))
        with self._opened.only(context, total, hashlib.sha256(total.to_bytes() + tag).digest()):
            integers = open_sum(self.key, total, tag)
        return layout, layout.unflatten(self.encoding.decode(integers, total.total_weight))

    def _encrypt(
        self,
        reply: Message,
        layout: ArrayLayout,
        client: int,
        number: int,
        run_id: int,
    ) -> None:
        name, record = only_arrays(reply.content)
        metrics = next(iter(reply.content.metric_records.values()), None)
        if metrics is None or self.weighted_by_key not in metrics:
            raise ParameterError(
                f"the reply lacks the metric {self.weighted_by_key!r}, the update's weight",
                what=self.weighted_by_key,
            )
        weight = self.encoding.require_weight(metrics[self.weighted_by_key])
        integers = encode_update(self.encoding, layout, record, client, weight)
        update = self.key.encrypt(
            integers,
            session=session(self.encoding, layout, run_id),
            round=number,
            client=client,
            weight=weight,
        )
        tag = tag_update(self.key, integers, update)
        reply.content[name] = ArrayRecord({UPDATE: blob(UPDATE, update.to_bytes()), TAG: blob(TAG, tag)})


def decrypt_arrays(record: ArrayRecord, key: SumKey, encoding: Encoding) -> dict[str, NDArray[Any]]:
    """Return the model in a record of arrays, such as the result of a run: a plain model unchanged, an
    encrypted sum decrypted.

    Raises:
        FormatError, MismatchError, AggregationError: the record is not an intact sum under this key
            and declaration, or has no arrays, as the result of a run without a successful round.
    """
    if not record:
        raise FormatError(
            "the record has no arrays: no round had enough usable updates, so the model is the one "
            "that it began with; the strategy's refusals and its log say why"
        )
    if not is_encrypted(record):
        return to_numpy(record)
    require_same(key, encoding)
    total, layout = read_sum(record, encoding)
    integers = open_sum(key, total, blob_bytes(record, TAG))
    return layout.unflatten(encoding.decode(integers, total.total_weight))


def encode_update(
    encoding: Encoding, layout: ArrayLayout, record: ArrayRecord, client: int, weight: int
) -> NDArray[np.int64]:
    """Return a trained model as integers.

    Because Flower sends metrics and the text of an exception to the server, the number of clipped values
    stays in the client's log, and the text names the array but no value; the cause, which the client logs,
    states the value.

    Raises:
        AggregationError: the arrays have other names or shapes than the received ones, or floats instead of
            integers.
        EncodeError: an array cannot be read or is not of real numbers, or a value is not finite or above the
            bound.
    """
    try:
        arrays = to_numpy(record)
        unreal = next((name for name, array in arrays.items() if array.dtype.kind not in "biuf"), None)
    except Exception as error:
        raise EncodeError(
            "the update is not sent: an array cannot be read; the log of this client says why"
        ) from error
    if unreal is not None:
        raise EncodeError(f"the update is not sent: array {unreal!r} is not of real numbers; convert it")
    values = layout.flatten(arrays, client)
    try:
        integers, clipped = encoding.encode(values, weight, layout)
    except EncodeError as error:
        index = error.index or 0
        finite = np.isfinite(values[index])
        what = f"above the bound {encoding.bound}" if finite else "that are not finite"
        array = layout.name(index).partition(" of ")[2]
        raise EncodeError(
            f"the update is not sent: {array} has values {what}; the log of this client states the largest, "
            "and what to do",
            value=error.value,
            index=index,
            bound=encoding.bound,
        ) from error
    if clipped:
        LOG.warning("%d values of the update were clipped to the bound %g", clipped, encoding.bound)
    return integers


def to_numpy(record: ArrayRecord) -> dict[str, NDArray[Any]]:
    """Return the arrays of a record by name."""
    return {name: np.asarray(array.numpy()) for name, array in record.items()}


def require_same(key: SumKey, encoding: Encoding) -> None:
    """Check that a key belongs to the declaration.

    Raises:
        ParameterError: it does not; the message names both.
    """
    if key.parameters != encoding.parameters:
        raise ParameterError(
            f"the key is for {key.parameters}, but the declaration needs {encoding.parameters}", what="key"
        )
