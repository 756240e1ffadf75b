"""The compilation target of a network: slots and levels of ciphertexts, and bootstraps."""

from dataclasses import dataclass

from keywright.compiler.layout.packing import SLOT_DOUBLINGS
from keywright.errors import ChoiceError
from keywright.program.operands.bootstraps import Bootstrap
from keywright.program.operands.layout import next_power_of_two

from .ring import Ring

SPREAD_DOUBLINGS = 2
"""How many doublings of the samples that fit one ciphertext are tried. Each doubles the bytes of the
diagonals."""


@dataclass(frozen=True, kw_only=True)
class Target:
    """The ciphertexts that a program computes on.

    Attributes:
        slots: maximum slots per ciphertext, N/2 at full packing; fewer are used if the network fits.
        levels: highest level of the parameters at which to compute; with a bootstrap, its output level.
        input_level: level of the inputs; None uses the lowest possible.
        output_level: level of the result; None uses 0, or the highest input level of the bootstraps, because
            primes below it have other widths.
        bootstraps: bootstraps to choose from, of equal slots, which a program that bootstraps then has. All
            bootstraps of a program have the same output level, the fastest one.
        rings: rings of values, the largest first; smaller ones are used where that costs less. None means one
            ring.
        fixed_slots: whether the program has exactly ``slots`` slots, with input and output in the first of
            the rings. A program between the stages of a bootstrapping needs this.
        unit_inputs: whether inputs are divided by a power of two that brings their range to at most 1, as
            clients that encrypt coefficients need; the first linear maps compensate. Without a measured or
            declared range, it is -1 to 1.
        samples: number of samples to evaluate. If ``batch`` is None, the compiler chooses how many of them
            share ciphertexts, so that all together take the least predicted time.
        batch: samples per ciphertext, a power of two.

    Raises:
        ValueError: slots or a batch that are not a power of two, a batch above the slots, no samples, or
            levels out of order.
        ChoiceError: bootstraps of different or too many slots, or above the highest level.
    """

    slots: int
    levels: int
    input_level: int | None = None
    output_level: int | None = None
    bootstraps: tuple[Bootstrap, ...] = ()
    rings: tuple[Ring, ...] = ()
    fixed_slots: bool = False
    unit_inputs: bool = False
    samples: int = 1
    batch: int | None = None

    def __post_init__(self) -> None:
        levels, lowest = self.levels, self.exit_level
        if self.slots < 1 or next_power_of_two(self.slots) != self.slots:
            raise ValueError(f"slots must be a power of two, got {self.slots}")
        if self.samples < 1:
            raise ValueError(f"samples must be at least 1, got {self.samples}")
        if self.batch is not None and (self.batch < 1 or next_power_of_two(self.batch) != self.batch):
            raise ValueError(f"batch must be a power of two, got {self.batch}")
        if self.batch is not None and self.batch > self.most_slots:
            raise ValueError(f"batch must be at most the {self.most_slots} slots, got {self.batch}")
        if not 0 <= lowest <= levels:
            raise ValueError(f"output_level must be between 0 and levels = {levels}, got {lowest}")
        if self.input_level is not None and not lowest <= self.input_level <= levels:
            raise ValueError(f"input_level must be between {lowest} and {levels}, got {self.input_level}")
        for option in self.bootstraps:
            if option.slots != self.bootstraps[0].slots or option.slots > self.slots:
                raise ChoiceError(
                    f"a bootstrap has {option.slots} slots; all must have the same number, at most "
                    f"{self.slots}",
                    code="bootstrap",
                )
            if option.output_level > levels:
                raise ChoiceError(
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
    def entry_level(self) -> int:
        """The highest level at which ciphertexts may enter."""
        return self.levels if self.input_level is None else self.input_level

    @property
    def exit_level(self) -> int:
        """The level of the result."""
        if self.output_level is not None:
            return self.output_level
        return max((option.input_level for option in self.bootstraps), default=0)

    @property
    def depth(self) -> int:
        """Levels that a network may consume without a bootstrap."""
        return self.entry_level - self.exit_level
