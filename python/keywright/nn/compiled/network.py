"""A compiled network: instructions on ciphertexts, their plaintexts, and the layouts of both ends."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from keywright.nn.activations.fitting import FittedActivation
from keywright.nn.activations.polynomials import PolynomialSpec
from keywright.nn.errors import InvalidSamplesError
from keywright.nn.graph.graph import Shape
from keywright.nn.graph.sparse import Vector
from keywright.nn.layout.diagonals import DiagonalMatrix
from keywright.nn.layout.layout import Layout
from keywright.nn.placement.bootstraps import Bootstrap

from .instructions import Instruction, Layer
from .key_switches import KeySwitch, RequiredKey, list_key_switches, required_keys


@dataclass(frozen=True, eq=False)
class CompiledNetwork:
    """What a program is made of: what runs, stores and checks programs reads this.

    Attributes:
        slots: slots per ciphertext; rotations are modulo this number.
        input_shape, output_shape: tensors of one sample, without the batch dimension.
        input_layout, output_layout: where their elements are.
        input_level, output_level: levels at which ciphertexts enter and leave.
        instructions: in order of execution.
        outputs: numbers of the ciphertexts that hold the result.
        output_scale: `unpack` multiplies by it; a power of two that brings results on calibration data to at
            most 1, so that they fit under the last prime.
        transforms, vectors, polynomials: the plaintext operands that instructions refer to.
        fitted: how well each activation's polynomial fits.
        bootstraps: what "bootstrap" instructions refer to.
        layers: in order of execution, what was compiled to which instructions.
    """

    slots: int
    input_shape: Shape
    output_shape: Shape
    input_layout: Layout
    output_layout: Layout
    input_level: int
    output_level: int
    instructions: tuple[Instruction, ...]
    outputs: tuple[int, ...]
    transforms: tuple[DiagonalMatrix, ...]
    vectors: tuple[Vector, ...]
    polynomials: tuple[PolynomialSpec, ...]
    fitted: tuple[FittedActivation, ...] = ()
    output_scale: float = 1.0
    bootstraps: tuple[Bootstrap, ...] = ()
    layers: tuple[Layer, ...] = ()

    @cached_property
    def key_switches(self) -> tuple[KeySwitch, ...]:
        """Every key switch, in order of execution."""
        return list_key_switches(self.instructions, self.transforms, self.polynomials)

    @cached_property
    def required_keys(self) -> tuple[RequiredKey, ...]:
        """Each key with the highest level at which it is used: relinearization first, then rotations by
        step."""
        return required_keys(self.key_switches)

    @cached_property
    def depth(self) -> int:
        """Levels consumed on the longest path from the input to the result."""
        depth: dict[int, int] = {}
        level: dict[int, int] = {}
        for step in self.instructions:
            spent = 0
            if step.opcode not in ("input", "drop_level", "bootstrap"):
                spent = level[step.operands[0]] - step.level
            depth[step.result] = max((depth[operand] for operand in step.operands), default=0) + spent
            level[step.result] = step.level
        return max(depth[output] for output in self.outputs)

    def pack(self, sample: ArrayLike) -> Vector:
        """One sample as slot vectors of shape (ciphertexts, slots), to be encrypted at ``input_level``.

        Raises:
            InvalidSamplesError: another shape than ``input_shape`` (a batch dimension of 1 is allowed), or
                values that are not finite.
        """
        values = np.asarray(sample, np.float64)
        if values.shape not in (self.input_shape, (1, *self.input_shape)):
            raise InvalidSamplesError(f"a sample has shape {self.input_shape}, got {values.shape}")
        if not np.isfinite(values).all():
            raise InvalidSamplesError(
                f"the sample holds {int((~np.isfinite(values)).sum())} values that are not finite"
            )
        return self.input_layout.pack(values.ravel())

    def unpack(self, slots: ArrayLike) -> Vector:
        """The result tensor in decrypted slot vectors of shape (ciphertexts, slots)."""
        expected = (self.output_layout.ciphertexts, self.slots)
        if np.shape(slots) != expected:
            raise InvalidSamplesError(f"the decrypted result has shape {expected}, got {np.shape(slots)}")
        values = self.output_layout.unpack(np.asarray(slots, np.float64))
        return values.reshape(self.output_shape) * self.output_scale
