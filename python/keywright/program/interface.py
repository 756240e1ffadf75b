"""The input and the output of a program: tensors, their places in ciphertexts, and what clients compute."""

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from keywright.errors.engine import EncodeError, FormatError
from keywright.errors.network import OutOfRangeError
from keywright.program.operands.binning import Binning
from keywright.program.operands.layout import Layout
from keywright.program.operands.normalisation import Normalisation, declared_magnitude

from .arrays import Shape, Vector, as_numbers, require_samples
from .client.first_steps import FirstSteps
from .client.joint_range import JointRange
from .client.last_steps import ClientPart
from .client.samples import in_order


@dataclass(frozen=True)
class ClientSteps:
    """What clients compute and check of a model before they encrypt.

    Attributes:
        first: such as imputing and look-ups, whose results are the features; None if samples are features.
        binning: turns features into bits; None if the program takes features as they are.
        bits: numbers of the features that must be 0 or 1, such as masks, because the program would compute
            another function of other values.
        joint: the range of all features together, which clients without the program check; None if the
            program has no ranges, or there were too few samples.
        columns: names of the columns of a sample, by which tables are taken; empty if they have none, or if
            the first steps have their own.

    Raises:
        ValueError: numbers below 0, or columns that are not those of samples.
    """

    first: FirstSteps | None = None
    binning: Binning | None = None
    bits: tuple[int, ...] = ()
    columns: tuple[str, ...] = ()
    joint: JointRange | None = None

    def __post_init__(self) -> None:
        if len(set(self.columns)) != len(self.columns):
            raise ValueError("two columns have one name")
        shapes = [] if self.first is None else [each.shape for each in self.first.inputs]
        if (
            self.columns
            and self.first is not None
            and (self.first.columns or shapes != [(len(self.columns),)])
        ):
            raise ValueError("the first steps take other columns")
        if min(self.bits, default=0) < 0:
            raise ValueError("features that must be 0 or 1 have numbers from 0 on")

    def require_shape(self, shape: Shape) -> None:
        """Check that the steps are for features of a shape.

        Raises:
            ValueError: they are for others.
        """
        size = math.prod(shape)
        if max(self.bits, default=0) >= size:
            raise ValueError("features that must be 0 or 1 have numbers that no feature has")
        if self.joint is not None and self.joint.width != size:
            raise ValueError(f"the joint range is of {self.joint.width} features of {size}")
        if self.columns and self.first is None and shape != (len(self.columns),):
            raise ValueError(f"samples of shape {shape} have {len(self.columns)} names of columns")
        if self.first is not None and self.first.shape != shape:
            raise ValueError(f"the first steps give {self.first.shape}, and the model takes {shape}")
        if self.binning is not None and shape != (self.binning.features,):
            raise ValueError(f"bits of {self.binning.features} features are for samples of shape {shape}")

    def read(self, samples: Any, shape: Shape) -> tuple[Vector, bool]:
        """Return the features of samples, (count, *shape), and whether a single sample was given, without a
        batch axis; without first steps, also samples of other shapes.

        Args:
            samples: see `FirstSteps.features`. Columns of tables are taken by name, others are left out.

        Raises:
            EncodeError: samples of another kind, or a table without one of the columns.
        """
        samples = in_order(samples, self.columns)
        if self.first is not None:
            return self.first.features(samples)
        values = as_numbers(samples)
        single = values.shape == shape
        return (values[None] if single else values), single

    def require(self, features: NDArray[np.float64]) -> None:
        """Refuse features, (count, ...), of which some have to be 0 or 1 and are not, or are outside the
        limits of trees.

        Raises:
            OutOfRangeError: names the value.
        """
        if self.binning is not None:
            self.binning.require_limits(features.reshape(len(features), -1), self._named)
        flat = features.reshape(len(features), -1)[:, list(self.bits)]
        wrong = flat[(flat != 0) & (flat != 1)]
        if len(wrong):
            raise OutOfRangeError("the mask in the input", float(wrong[0]), 0.0, 1.0)

    @property
    def _named(self) -> tuple[str, ...]:
        """Names of the columns of features; empty if they have none."""
        return self.columns if self.first is None else ()

    def require_within(self, features: NDArray[np.float64], low: Vector, high: Vector) -> None:
        """Refuse features, (count, elements), outside a range of each element, or of all, (1,).

        Raises:
            OutOfRangeError: names the value furthest outside, with its column if columns have names.
        """
        distances = np.maximum(low - features, features - high)
        if not features.size or distances.max() <= 0:
            return
        row, place = np.unravel_index(int(np.nan_to_num(distances, nan=np.inf).argmax()), distances.shape)
        least, most = (float(np.broadcast_to(each, features.shape[1:])[place]) for each in (low, high))
        layer = f"column {self._named[place]!r}" if self._named else "the model's input"
        raise OutOfRangeError(layer, float(features[row, place]), least, most)


@dataclass(frozen=True, eq=False, kw_only=True)
class InputCodec:
    """What turns samples into the values of ciphertexts, for who has the program and who has its manifest.

    Attributes:
        range: (low, high) of the values; None if it was never stated or measured.
        scale: values are divided by it; a power of two, and 1 unless clients need numbers of at most 1.
        normalisation: samples are normalised by it; None if they are as calibrated. Results of ciphertexts
            then hardly depend on the size of the inputs.
        steps: of the client. Their first ones make the features, of which ``shape`` is the shape.
        log_n: log2 of the degree of the smaller ring of the ciphertexts; 0 for the largest.
    """

    range: tuple[float, float] | None = None
    scale: float = 1.0
    normalisation: Normalisation | None = None
    steps: ClientSteps = field(default_factory=ClientSteps)
    log_n: int = 0

    @property
    def magnitude(self) -> float | None:
        """The magnitude that ciphertexts of packed inputs declare; None for the parameters' default."""
        return declared_magnitude(self.range, self.scale, self.normalisation)

    def missing(self, features: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Return which features, (..., *shape), are not numbers that the model takes."""
        if self.steps.binning is None:
            return np.asarray(~np.isfinite(features), np.bool_)
        wrong = ~np.isfinite(self.steps.binning.rounded(features))  # of trees in single precision
        return np.asarray(wrong & ~self.steps.binning.absent(features), np.bool_)

    def without_numbers(self, features: NDArray[np.float64]) -> str:
        """Say which features, (count, *shape), are not numbers that the model takes; empty if all are."""
        count = int(self.missing(features).sum())
        if not count:
            return ""
        if self.steps.first is None:
            return f"the samples hold {count} values that are not finite; remove them"
        return (
            f"the client's first steps give {count} features that are no numbers: a value of the samples is "
            "missing, or none of the categories that an encoder knows; impute it, or map it to one of them"
        )

    def require_range(
        self, features: NDArray[np.float64], *, joint: bool = True, magnitude: float | None = None
    ) -> None:
        """Refuse features, (count, *shape), outside the range of the inputs or of all of them together, and
        values other than 0 and 1 where the program needs these.

        Args:
            joint: whether the range of all of them together is checked.
            magnitude: that ciphertexts declare; by default `magnitude`.

        Raises:
            OutOfRangeError: names the value furthest outside, or states the distance.
        """
        self.steps.require(features)
        if self.range is None or self.steps.binning is not None:
            return
        low, high = self._held(magnitude or self.magnitude or np.inf)
        low, high = np.maximum(low, self.range[0]), np.minimum(high, self.range[1])
        self.steps.require_within(features.reshape(len(features), -1), low, high)
        if joint and self.steps.joint is not None:
            self.steps.joint.require(features)

    def require_magnitude(self, features: Vector, magnitude: float) -> None:
        """Refuse features, (count, *shape), above the magnitude that their ciphertexts declare.

        Raises:
            OutOfRangeError: names the value furthest outside, and the range of its element, which depends on
                the declaration alone.
        """
        if self.steps.binning is None:
            self.steps.require_within(features.reshape(len(features), -1), *self._held(magnitude))

    def _held(self, magnitude: float) -> tuple[Vector, Vector]:
        """Return the least and the largest value of each element, or of all, (1,), that ciphertexts of a
        declared magnitude hold."""
        normal = self.normalisation or Normalisation(np.zeros(1), np.ones(1))
        with np.errstate(over="ignore"):
            reach = magnitude * self.scale * normal.scale
            ends = [np.nan_to_num(normal.offset + sign * reach) for sign in (-1.0, 1.0)]
            rounded = [np.abs(normal.apply(each)) / self.scale > magnitude for each in ends]
        low, high = (
            np.where(outside, np.nextafter(each, normal.offset), each)
            for each, outside in zip(ends, rounded, strict=True)
        )
        return low, high

    def entering(self, features: Vector) -> Vector:
        """Return features, (count, *shape), as they are packed: (count, elements).

        Raises:
            EncodeError: the features are finite, and the packed values are not.
        """
        normal, flat = self.normalisation, features.reshape(len(features), -1)
        if self.steps.binning is not None:
            flat = self.steps.binning.apply(flat)
        with np.errstate(over="ignore", invalid="ignore"):
            packed = np.asarray((flat if normal is None else normal.apply(flat)) / self.scale, np.float64)
        if np.isfinite(flat).all() and not np.isfinite(packed).all():
            least = self.scale * (1.0 if normal is None else float(normal.scale.min()))
            raise EncodeError(
                f"inputs of at most {np.abs(flat).max():.3g} are not finite after the model's normalisation, "
                f"which divides them by {least:.3g} or more",
                code="samples",
            )
        return packed


@dataclass(frozen=True, eq=False, kw_only=True)
class OutputCodec:
    """What turns the values of ciphertexts into outputs.

    Attributes:
        scale: values are multiplied by it; a power of two that brings results on calibration data so low that
            those of inputs `HEADROOM` times as large fit under the last prime.
        normalisation: it is inverted; None, as always for thin clients, if there is none.
        image: the least and the largest output, to which outputs are clipped; None if it is not known.
        client_part: the part of the model behind the results, such as softmax; None if there is none.
    """

    scale: float = 1.0
    normalisation: Normalisation | None = None
    client_part: ClientPart | None = None
    image: tuple[float, float] | None = None

    @property
    def unit(self) -> float:
        """The largest change of an output if a decrypted value changes by 1."""
        normal = self.normalisation
        return self.scale * (1.0 if normal is None else float(normal.scale.max()))

    def entry(self, value: float, element: int | None) -> float:
        """Return an output from the value of its slot; of slots without an element, only its size."""
        normal = self.normalisation
        if normal is None or element is None:
            return value * self.unit
        offset, scale = (float(each[element % each.size]) for each in (normal.offset, normal.scale))
        return value * self.scale * scale + offset

    def leaving(self, values: Vector) -> Vector:
        """Return the outputs, (count, ...), from unpacked values of the same shape.

        Raises:
            FormatError: the values are finite, and the outputs are not.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            normal, flat = self.normalisation, values.reshape(len(values), -1) * self.scale
            flat = flat if normal is None else normal.invert(flat)
        if np.isfinite(values).all() and not np.isfinite(flat).all():
            raise FormatError(
                f"results of at most {np.abs(values).max():.3g} give outputs that are not finite: the model "
                f"multiplies them by up to {self.unit:.3g}",
                code="field",
            )
        return (flat if self.image is None else np.clip(flat, *self.image)).reshape(values.shape)

    def answers(self, outputs: ArrayLike, shape: Shape) -> dict[str, NDArray[Any]]:
        """Compute the model's own outputs by name, such as labels and probabilities, from decrypted results.
        This is the client's part of the model. The dictionary is empty for a model without such a part: its
        decrypted results are the model's output.

        Args:
            outputs: of several samples, (count, *shape), or of one, whose answers then have no batch axis.

        Raises:
            EncodeError: the shape is wrong, or they are no real numbers.
            FormatError: a step of the client's part cannot be run, or gives numbers that are not finite, and
                none of them is a logarithm.
        """
        values = as_numbers(outputs, "outputs")
        if values.shape == shape:
            return {name: each[0] for name, each in self.answers(values[None], shape).items()}
        require_samples(values, shape, "results")
        if self.client_part is None:
            return {}
        answers = self.client_part.run(values)
        if self.client_part.gives_finite and np.isfinite(values).all():
            for name, each in answers.items():
                if each.dtype.kind == "f" and not np.isfinite(each).all():
                    raise FormatError(
                        f"the client's part gives {name} that is not finite: a number of it is too large",
                        code="program",
                    )
        return answers


@dataclass(frozen=True, eq=False)
class ProgramInput(InputCodec):
    """The tensor that a program takes.

    Attributes:
        shape: of one sample, without the batch dimension.
        layout: positions of its elements.
        level: level at which ciphertexts enter.
        range, scale, normalisation, steps, log_n: see `InputCodec`.
    """

    shape: Shape
    layout: Layout
    level: int


@dataclass(frozen=True, eq=False)
class ProgramOutput(OutputCodec):
    """The tensor that a program gives.

    Attributes:
        shape: for one sample, without the batch dimension.
        layout: positions of its elements.
        level: level at which ciphertexts leave.
        ciphertexts: numbers of the ciphertexts that hold it.
        scale, normalisation, image, client_part: see `OutputCodec`.
    """

    shape: Shape
    layout: Layout
    level: int
    ciphertexts: tuple[int, ...]
