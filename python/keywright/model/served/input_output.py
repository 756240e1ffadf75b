"""The input and the output of a served model, as its manifest states them."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from keywright.errors.engine import FormatError
from keywright.program.client.client_part import ClientPart
from keywright.program.interface import ClientSteps
from keywright.program.operands.normalisation import Normalisation

from .fields import MAX_VALUES, read_list, read_number, read_object


@dataclass(frozen=True)
class Places:
    """Positions of the values of samples in the ciphertexts that the samples share.

    Value ``i``, in row-major order, of sample ``b < batch`` is at ``start[i] + b + k * stride`` for every ``k
    < repeat``. Place ``p`` is slot ``p % size`` of ciphertext ``p // size``. A full client encrypts that
    slot. A thin client encrypts the coefficient that the server's bootstrapping moves to that slot.

    Attributes:
        shape: shape of one sample.
        batch: number of samples. Fewer samples are repeated, because unused slots must hold values in the
            model's range.
        ciphertexts: number of ciphertexts.
        size: slots of each.
    """

    shape: tuple[int, ...]
    batch: int
    ciphertexts: int
    size: int
    start: tuple[int, ...]
    repeat: int
    stride: int

    def pack(self, values: NDArray[np.float64], first: int | None = None) -> NDArray[np.float64]:
        """Pack tensors of 1 to ``batch`` samples, (count, *shape), into (ciphertexts, size); other places are
        zero.

        Args:
            first: the first place of these samples; the others are left to other requests. By default,
                samples are repeated in all places.
        """
        packed = np.zeros(self.ciphertexts * self.size)
        taken = np.arange(self.batch) if first is None else first + np.arange(len(values))
        places = taken[:, None, None] + np.asarray(self.start)[:, None]
        places = places + np.arange(self.repeat) * self.stride
        packed[places] = values.reshape(len(values), -1, 1)[np.arange(len(taken)) % len(values)]
        return packed.reshape(self.ciphertexts, self.size)

    def unpack(self, packed: NDArray[np.float64], count: int, first: int = 0) -> NDArray[np.float64]:
        """Unpack ``count`` samples from place ``first`` on: from (ciphertexts, size) to (count, *shape)."""
        places = first + np.arange(count)[:, None] + np.asarray(self.start)
        values: NDArray[np.float64] = packed.reshape(-1)[places].reshape(count, *self.shape)
        return values

    @staticmethod
    def read(value: object, what: str) -> "Places":
        """Read places from JSON and check every number.

        Raises:
            FormatError: the numbers are inconsistent.
        """
        entry = read_object(value, what)
        shape = tuple(
            read_number(extent, f"{what}.shape", 1, MAX_VALUES) for extent in read_list(entry, "shape", what)
        )
        count = 1
        for extent in shape:
            count = min(count * extent, MAX_VALUES + 1)
        ciphertexts = read_number(entry.get("ciphertexts"), f"{what}.ciphertexts", 1, 1 << 10)
        size = read_number(entry.get("size"), f"{what}.size", 1, min(1 << 17, MAX_VALUES // ciphertexts))
        repeat = read_number(entry.get("repeat"), f"{what}.repeat", 1, size)
        stride = read_number(entry.get("stride"), f"{what}.stride", 1, size)
        batch = read_number(entry.get("batch"), f"{what}.batch", 1, size)
        last = ciphertexts * size - batch - (repeat - 1) * stride
        start = tuple(
            read_number(place, f"{what}.start", 0, last) for place in read_list(entry, "start", what)
        )
        if len(start) != count:
            raise FormatError(
                f"{what} has the shape {list(shape)}, which does not match its {len(start)} places",
                code="manifest",
            )
        return Places(shape, batch, ciphertexts, size, start, repeat, stride)


@dataclass(frozen=True)
class ManifestInput:
    """The values that clients encrypt.

    Attributes:
        places: their positions.
        level: level of the ciphertexts that clients send.
        range: (low, high) of the values; None if unbounded.
        divisor: a power of two by which clients divide values before encryption; thin clients encrypt values
            of at most 1 in size.
        normalisation: the normalisation by the client, before the division; None if there is none.
        steps: the computations of the client before encryption, and the features that must be 0 or 1.
        ring: log2 of the degree of the smaller ring in which clients encrypt; 0 for the largest.
    """

    places: Places
    level: int
    range: tuple[float, float] | None
    divisor: float
    normalisation: Normalisation | None = None
    steps: ClientSteps = field(default_factory=ClientSteps)
    ring: int = 0


@dataclass(frozen=True)
class ManifestOutput:
    """The values that clients decrypt.

    Attributes:
        places: their positions.
        level: level of the ciphertexts that come back.
        factor: decrypted numbers are multiplied by it.
        normalisation: the normalisation that the client inverts; None, as always for thin clients, if there
            is none.
        labels: labels of the values; empty if they have no names.
        client_part: the part of the model behind the values, which the client computes; None if there is
            none.
    """

    places: Places
    level: int
    factor: float
    normalisation: Normalisation | None = None
    labels: tuple[str, ...] = ()
    client_part: ClientPart | None = None
