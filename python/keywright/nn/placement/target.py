"""What a network is compiled for: slots and levels of ciphertexts, and bootstraps that give new levels."""

from dataclasses import dataclass

from keywright.nn.errors import InvalidBootstrapError
from keywright.nn.layout.layout import next_power_of_two

from .bootstraps import Bootstrap


@dataclass(frozen=True, kw_only=True)
class Target:
    """The ciphertexts that a program computes on.

    Attributes:
        slots: most slots per ciphertext, N/2 at full packing; fewer are used if the network fits.
        levels: highest level of the parameters at which to compute; with a bootstrap, its output level.
        input_level: level at which ciphertexts enter; None takes the lowest that is possible.
        output_level: level at which the result leaves; None takes 0, or the highest input level of the
            bootstraps, since primes below it have other widths.
        bootstraps: ways to bootstrap, of equal slots, to choose from; a program that bootstraps has these
            slots.
        fixed_slots: whether the program has exactly ``slots`` slots, as its place between the stages of a
            bootstrapping asks for.

    Raises:
        ValueError: slots that are no power of two, or levels that are out of order.
        InvalidBootstrapError: bootstraps of different or too many slots, or above the highest level.
    """

    slots: int
    levels: int
    input_level: int | None = None
    output_level: int | None = None
    bootstraps: tuple[Bootstrap, ...] = ()
    fixed_slots: bool = False

    def __post_init__(self) -> None:
        levels, lowest = self.levels, self.exit_level
        if self.slots < 1 or next_power_of_two(self.slots) != self.slots:
            raise ValueError(f"slots must be a power of two, got {self.slots}")
        if not 0 <= lowest <= levels:
            raise ValueError(f"output_level must be between 0 and levels = {levels}, got {lowest}")
        if self.input_level is not None and not lowest <= self.input_level <= levels:
            raise ValueError(f"input_level must be between {lowest} and {levels}, got {self.input_level}")
        for option in self.bootstraps:
            if option.slots != self.bootstraps[0].slots or option.slots > self.slots:
                raise InvalidBootstrapError(
                    f"a bootstrap of {option.slots} slots; all must have the same number, "
                    f"at most {self.slots}"
                )
            if option.output_level > levels:
                raise InvalidBootstrapError(
                    f"a bootstrap to level {option.output_level} above the highest, {levels}"
                )

    @property
    def entry_level(self) -> int:
        """The highest level at which ciphertexts may enter."""
        return self.levels if self.input_level is None else self.input_level

    @property
    def exit_level(self) -> int:
        """The level at which the result leaves."""
        if self.output_level is not None:
            return self.output_level
        return max((option.input_level for option in self.bootstraps), default=0)

    @property
    def depth(self) -> int:
        """Levels that a network may consume without a bootstrap."""
        return self.entry_level - self.exit_level
