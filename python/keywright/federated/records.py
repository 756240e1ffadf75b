"""The contents of Flower's records."""

import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any

from flwr.app import Array, ArrayRecord, ConfigRecord, RecordDict
from numpy.typing import NDArray

from keywright._core import EncryptedSum, EncryptedUpdate
from keywright._reading.arrays import read_array
from keywright.errors import AggregationError, FormatError, ParameterError
from keywright.federated.array_layout import MAX_VALUES, ArrayLayout
from keywright.federated.encoding import Encoding

UPDATE, SUM, LAYOUT, TAG = "keywright.update", "keywright.sum", "keywright.layout", "keywright.tag"


def session(encoding: Encoding, layout: ArrayLayout, run_id: int) -> bytes:
    """Return 16 bytes that name a run: a digest of the declaration, the layout and Flower's run."""
    agreed = [
        run_id,
        float(encoding.bound).hex(),
        encoding.bits,
        encoding.max_clients,
        encoding.max_weight,
        layout.to_bytes().decode(),
    ]
    return hashlib.sha256(b"keywright session" + json.dumps(agreed).encode()).digest()[:16]


def blob(stype: str, data: bytes) -> Array:
    """Return bytes as an array of Flower."""
    return Array("uint8", (len(data),), stype, data)


def blob_bytes(record: ArrayRecord, stype: str) -> bytes:
    """Return the bytes of the array named ``stype``.

    Raises:
        FormatError: there is none.
    """
    array = record.get(stype)
    if array is None or array.stype != stype or not isinstance(array.data, bytes):
        raise FormatError(f"no {stype} among {sorted(record)[:4]}", code="kind", expected=stype)
    return array.data


def is_encrypted(record: ArrayRecord) -> bool:
    """Whether a record is an encrypted sum rather than a model."""
    return SUM in record


def only_arrays(content: RecordDict) -> tuple[str, ArrayRecord]:
    """Return name and contents of the only record of arrays.

    Raises:
        FormatError: there is none, or more than one.
    """
    records = content.array_records
    if len(records) != 1:
        raise FormatError(
            f"the message has {len(records)} records of arrays; it must have one",
            code="contents",
            found=len(records),
            expected=1,
        )
    return next(iter(records.items()))


def read_arrays(record: ArrayRecord) -> dict[str, NDArray[Any]]:
    """Return the arrays of a received model by name.

    Raises:
        FormatError: an array is not one of numpy's format with real numbers.
    """
    arrays = {}
    for name, array in record.items():
        if array.stype != "numpy.ndarray" or not isinstance(array.data, bytes):
            raise FormatError(
                f"array {name!r} is of type {array.stype!r:.40}, not numpy's",
                code="kind",
                expected="numpy.ndarray",
            )
        arrays[name] = read_array(array.data, MAX_VALUES)
    return arrays


def server_round(config_records: Mapping[str, ConfigRecord]) -> int:
    """Return the round that the server states, as Flower's strategies do.

    Raises:
        ParameterError: it states none.
    """
    for record in config_records.values():
        value = record.get("server-round")
        if type(value) is int and 0 < value < 2**32:
            return value
    raise ParameterError(
        "the message has no `server-round`; use a strategy that states it", what="server-round"
    )


def read_sum(record: ArrayRecord, encoding: Encoding) -> tuple[EncryptedSum, ArrayLayout]:
    """Read a sum and the layout of its values, and check that they match.

    Raises:
        FormatError, MismatchError: the bytes are incomplete, or have other parameters.
        AggregationError: the sum has another number of values, or too few contributors.
    """
    layout = ArrayLayout.from_bytes(blob_bytes(record, LAYOUT))
    total = EncryptedSum.from_bytes(blob_bytes(record, SUM), encoding.parameters)
    _match("number of values", total.count, layout.count)
    if len(total.contributors) < encoding.min_clients:
        raise AggregationError(
            f"the sum has {len(total.contributors)} contributors; {encoding.min_clients} are needed, so "
            "that no single model is revealed",
            code="too_few",
            found=len(total.contributors),
            expected=encoding.min_clients,
        )
    return total, layout


def _match(what: str, result: object, expected: object, client: int | None = None) -> None:
    if result != expected:
        shown: Callable[[object], object] = lambda value: value.hex() if isinstance(value, bytes) else value  # noqa: E731
        whose = "" if client is None else f" of client {client}"
        raise AggregationError(
            f"{what}{whose} is {shown(result)}, expected {shown(expected)}",
            code=what.replace(" ", "_"),
            client=client,
            found=result,
            expected=expected,
        )


def check_update(
    update: EncryptedUpdate,
    *,
    session: bytes,
    round: int,  # noqa: A002
    client: int,
    weight: int,
    count: int,
) -> None:
    """Refuse an update that its sender may not send now: from another run, replayed, or of another client.

    Raises:
        AggregationError: names the field, its value and the expected value.
    """
    _match("round", update.round, round, client)
    _match("client", update.client, client, client)
    _match("number of values", update.count, count, client)
    _match("session", update.session, session, client)
    _match("weight", update.weight, weight, client)
