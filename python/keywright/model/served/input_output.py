"""The input and the output of a served model, as its manifest states them."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from keywright._reading.arrays import MAX_AXES
from keywright.errors.engine import FormatError
from keywright.program.interface import InputCodec, OutputCodec

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
        if len(shape) >= MAX_AXES:  # a batch has one more
            raise FormatError(
                f"{what} has {len(shape)} axes; at most {MAX_AXES - 1} are read", code="manifest"
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
        if batch * count * repeat > ciphertexts * size:
            # Some would share places, and packing them would take any memory.
            raise FormatError(
                f"{what} has {count} values {repeat} times for {batch} samples, more than its "
                f"{ciphertexts * size} places",
                code="manifest",
            )
        return Places(shape, batch, ciphertexts, size, start, repeat, stride)


@dataclass(frozen=True)
class ManifestInput(InputCodec):
    """The values that clients encrypt.

    Attributes:
        places: their positions.
        level: level of the ciphertexts that clients send.
        range, scale, normalisation, steps, log_n: see `keywright.program.interface.InputCodec`. Thin clients
            encrypt values of at most 1 in size.
    """

    places: Places
    level: int

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of a sample's features, before they are binned."""
        binning = self.steps.binning
        return self.places.shape if binning is None else (binning.features,)

    def require_steps(self) -> None:
        """Check that what clients compute and check fits the shape of samples.

        Raises:
            FormatError: it is for others.
        """
        steps, size = self.steps, math.prod(self.shape)
        if max(steps.bits, default=0) >= size:
            raise FormatError(
                "features that must be 0 or 1 have numbers that no feature has", code="manifest"
            )
        if steps.joint is not None and steps.joint.width != size:
            raise FormatError("the joint range is of other features", code="manifest")
        if steps.columns and steps.first is None and self.shape != (len(steps.columns),):
            raise FormatError(
                f"the manifest names {len(steps.columns)} columns of samples of shape {self.shape}",
                code="manifest",
            )
        if steps.first is not None and steps.first.shape != self.shape:
            raise FormatError(
                f"the first steps give features of shape {steps.first.shape} for a model of {self.shape}",
                code="manifest",
            )
        if steps.binning is not None and self.places.shape != (steps.binning.bits,):
            raise FormatError(
                f"the first step gives {steps.binning.bits} bits for an input of {self.places.shape}",
                code="manifest",
            )


@dataclass(frozen=True)
class ManifestOutput(OutputCodec):
    """The values that clients decrypt.

    Attributes:
        places: their positions.
        level: level of the ciphertexts that come back.
        labels: labels of the values; empty if they have no names.
        scale, normalisation, image, client_part: see `keywright.program.interface.OutputCodec`.
    """

    places: Places
    level: int
    labels: tuple[str, ...] = ()
