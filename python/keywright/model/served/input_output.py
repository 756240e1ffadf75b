"""The input and the output of a served model, as its manifest states them."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keywright._reading.arrays import MAX_AXES
from keywright._reading.records import whole
from keywright.program.file.codecs import MAX_VALUES, read_list
from keywright.program.interface import InputCodec, OutputCodec


@dataclass(frozen=True)
class Places:
    """Positions of the values of samples in the ciphertexts that the samples share.

    Value ``i``, in row-major order, of sample ``b < batch`` is at ``start[i] + b + k * stride`` for every ``k
    < repeat``. Place ``p`` is slot ``p % size`` of ciphertext ``p // size``. A full client encrypts that
    slot. A thin client encrypts the coefficient that the server's bootstrapping moves to that slot. Of two
    parts, the second half of the samples is in the second half of the ciphertexts, where the first half is in
    the others.

    Attributes:
        shape: shape of one sample.
        batch: number of samples. Fewer samples are repeated, because unused slots must hold values in the
            model's range.
        ciphertexts: number of ciphertexts.
        size: slots of each.
        parts: 1 or 2.
    """

    shape: tuple[int, ...]
    batch: int
    ciphertexts: int
    size: int
    start: tuple[int, ...]
    repeat: int
    stride: int
    parts: int = 1

    def to_json(self) -> dict[str, object]:
        """Return what `read` reads; one part is not stated."""
        return {name: value for name, value in asdict(self).items() if name != "parts" or value > 1}

    def _offsets(self, samples: NDArray[np.integer[Any]]) -> NDArray[np.integer[Any]]:
        """Return how far samples are behind the first, in places."""
        part, within = np.divmod(samples, self.batch // self.parts)
        return part * (self.ciphertexts // self.parts * self.size) + within

    def pack(self, values: NDArray[np.float64], first: int | None = None) -> NDArray[np.float64]:
        """Pack tensors of 1 to ``batch`` samples, (count, *shape), into (ciphertexts, size); other places are
        zero.

        Args:
            first: the first place of these samples; the others are left to other requests. By default,
                samples are repeated in all places.
        """
        packed = np.zeros(self.ciphertexts * self.size)
        taken = np.arange(self.batch) if first is None else first + np.arange(len(values))
        places = self._offsets(taken)[:, None, None] + np.asarray(self.start)[:, None]
        places = places + np.arange(self.repeat) * self.stride
        packed[places] = values.reshape(len(values), -1, 1)[np.arange(len(taken)) % len(values)]
        return packed.reshape(self.ciphertexts, self.size)

    def unpack(self, packed: NDArray[np.float64], count: int, first: int = 0) -> NDArray[np.float64]:
        """Unpack ``count`` samples from place ``first`` on: from (ciphertexts, size) to (count, *shape)."""
        places = self._offsets(first + np.arange(count))[:, None] + np.asarray(self.start)
        values: NDArray[np.float64] = packed.reshape(-1)[places].reshape(count, *self.shape)
        return values

    @staticmethod
    def read(value: object, what: str) -> "Places":
        """Read places from JSON and check every number.

        Raises:
            ValueError: the numbers are inconsistent.
        """
        if not isinstance(value, dict):
            raise ValueError(f"the {what} is not a JSON object")
        shape = tuple(
            whole(extent, f"{what}.shape", 1, MAX_VALUES)
            for extent in read_list(value.get("shape"), f"{what}.shape")
        )
        if len(shape) >= MAX_AXES:  # a batch has one more
            raise ValueError(f"{what} has {len(shape)} axes; at most {MAX_AXES - 1} are read")
        count = 1
        for extent in shape:
            count = min(count * extent, MAX_VALUES + 1)
        ciphertexts = whole(value.get("ciphertexts"), f"{what}.ciphertexts", 1, 1 << 10)
        size = whole(value.get("size"), f"{what}.size", 1, min(1 << 17, MAX_VALUES // ciphertexts))
        parts = whole(value.get("parts", 1), f"{what}.parts", 1, 2)
        repeat, stride = (whole(value.get(name), f"{what}.{name}", 1, size) for name in ("repeat", "stride"))
        batch = whole(value.get("batch"), f"{what}.batch", 1, size * parts)
        if batch % parts or ciphertexts % parts:
            raise ValueError(
                f"{what} has {batch} samples in {ciphertexts} ciphertexts, not {parts} equal parts"
            )
        last = (ciphertexts * size - batch) // parts - (repeat - 1) * stride
        start = tuple(
            whole(place, f"{what}.start", 0, last) for place in read_list(value.get("start"), f"{what}.start")
        )
        if len(start) != count:
            raise ValueError(f"{what} has the shape {list(shape)}, which does not match {len(start)} places")
        if batch * count * repeat > ciphertexts * size:
            # Some would share places, and packing them would take any memory.
            raise ValueError(
                f"{what} has {count} values {repeat} times for {batch} samples, more than its "
                f"{ciphertexts * size} places"
            )
        return Places(shape, batch, ciphertexts, size, start, repeat, stride, parts)


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
