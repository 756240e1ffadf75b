"""The compilation target of a network: slots and levels of ciphertexts, and bootstraps."""

from dataclasses import dataclass
from typing import Literal, get_args

from keywright.compiler.layout.layout_choice import SLOT_DOUBLINGS
from keywright.errors import ParameterError
from keywright.errors.choices import require_choice, require_integer
from keywright.program.operands.bootstraps import Bootstrap
from keywright.program.operands.layout import next_power_of_two

from .ring import Ring

SPREAD_DOUBLINGS = 2
"""How many doublings of the samples that fit one ciphertext are tried. Each doubles the bytes of the
diagonals."""


Packing = Literal["slots", "coefficients"]


@dataclass(frozen=True, kw_only=True)
class Target:
    """The ciphertexts on which a program computes.

    Attributes:
        slots: maximum slots per ciphertext, N/2 at full packing; fewer are used if the network fits.
        levels: highest level of the parameters at which to compute; with a bootstrap, its output level.
        output_level: level of the result; None uses 0, or the highest input level of the bootstraps, because
            primes below it have other widths.
        bootstraps: bootstraps to choose from, of equal slots, which a program that bootstraps then has. All
            bootstraps of a program have the same output level, the fastest one.
        rings: rings of values, the largest first; smaller ones are used where that costs less. None means one
            ring.
        packing: the places of clients' values. "slots": in slots, fewer than ``slots`` if that is enough.
            "coefficients": a bootstrapping takes the ciphertexts in, and its first stage gives the results.
            The program then has exactly ``slots`` slots, with input and output in the first of the rings. It
            divides inputs by a power of two that brings their range to at most 1; without a measured or
            declared range, that is -1 to 1.
        samples: number of samples to evaluate. If ``batch`` is None, the compiler chooses how many of them
            share ciphertexts, so that all together take the least predicted time.
        batch: samples per ciphertext, a power of two.

    Raises:
        ParameterError: slots or a batch that are not a power of two, a batch above the slots, no samples,
            levels out of order, an unknown packing, or bootstraps of different or too many slots, or above
            the highest level.
    """

    slots: int
    levels: int
    output_level: int | None = None
    bootstraps: tuple[Bootstrap, ...] = ()
    rings: tuple[Ring, ...] = ()
    packing: Packing = "slots"
    samples: int = 1
    batch: int | None = None

    def __post_init__(self) -> None:
        require_choice("packing", self.packing, get_args(Packing))
        for name in ("slots", "levels", "output_level", "samples", "batch"):
            if (value := getattr(self, name)) is not None:
                object.__setattr__(self, name, require_integer(name, value))
        levels, lowest = self.levels, self.exit_level
        if self.slots < 1 or next_power_of_two(self.slots) != self.slots:
            raise ParameterError(f"slots must be a power of two, got {self.slots}", what="slots")
        if self.samples < 1:
            raise ParameterError(f"samples must be at least 1, got {self.samples}", what="samples")
        if self.batch is not None and (self.batch < 1 or next_power_of_two(self.batch) != self.batch):
            raise ParameterError(f"batch must be a power of two, got {self.batch}", what="batch")
        if self.batch is not None and self.batch > self.most_slots:
            raise ParameterError(
                f"batch must be at most the {self.most_slots} slots, got {self.batch}", what="batch"
            )
        if not 0 <= lowest <= levels:
            text = f"output_level must be between 0 and levels = {levels}, got {lowest}"
            raise ParameterError(text, what="output_level")
        for option in self.bootstraps:
            if option.slots != self.bootstraps[0].slots or option.slots > self.slots:
                raise ParameterError(
                    f"a bootstrap has {option.slots} slots; all must have the same number, at most "
                    f"{self.slots}",
                    code="bootstrap",
                )
            if option.output_level > levels:
                raise ParameterError(
                    f"a bootstrap reaches level {option.output_level}, above the highest, {levels}",
                    code="bootstrap",
                )

    @property
    def most_slots(self) -> int:
        """Maximum slots of a ciphertext of the program, with its bootstraps if it needs them."""
        return min((option.slots for option in self.bootstraps), default=self.slots)

    def batch_range(self, largest: int) -> tuple[int, int, int]:
        """Return the smallest batch that is tried for a network whose largest tensor has ``largest``
        elements, the first batch tried, and the largest.

        The first is the number of samples, or as many as fit one ciphertext. Smaller batches leave more room,
        which can save rotations. Larger ones spread over several ciphertexts, in which smaller tensors still
        stay together.
        """
        if self.batch is not None:
            return self.batch, self.batch, self.batch
        fitting = max(self.most_slots // next_power_of_two(largest), 1)
        every = min(next_power_of_two(self.samples), self.most_slots)
        first = min(every, fitting)
        return max(first >> SLOT_DOUBLINGS, 1), first, min(every, fitting << SPREAD_DOUBLINGS)

    @property
    def thin(self) -> bool:
        """Whether clients put values into coefficients."""
        return self.packing == "coefficients"

    @property
    def exit_level(self) -> int:
        """The level of the result."""
        if self.output_level is not None:
            return self.output_level
        return max((option.input_level for option in self.bootstraps), default=0)

    @property
    def depth(self) -> int:
        """Levels that a network may consume without a bootstrap."""
        return self.levels - self.exit_level
