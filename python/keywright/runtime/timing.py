"""Times each layer of a program while it runs."""

import time
from collections import Counter
from collections.abc import Callable

from keywright.program.program import Program

Advance = Callable[[float, str], object]
"""A progress bar: called with the predicted seconds of an operation that has ended, and the next layer."""


def _silent(*_: object) -> None:
    """Report nothing."""


class LayerClock:
    """Adds up the time of every layer; pass `step` as ``on_step`` of `EncryptedBackend`.

    Thread safety: one thread at a time.

    Args:
        program: the running program.

    Attributes:
        seconds: of each of ``program.layers``, summed over runs.
    """

    def __init__(self, program: Program) -> None:
        self._layer = {
            index: number
            for number, layer in enumerate(program.layers)
            for index in range(layer.start, layer.stop)
        }
        self._switches: Counter[int | None] = Counter()
        for switch in program.key_switches:
            self._switches[self._layer.get(switch.instruction)] += switch.count
        self._order = [index for index, step in enumerate(program.instructions) if step.opcode != "input"]
        self._steps = Counter(self._layer.get(index) for index in self._order)
        self._advance: Advance = _silent
        self._done, self._last = 0, 0.0
        self.layers = program.layers
        self.seconds = [0.0] * len(program.layers)

    def start(self, advance: Advance | None = None) -> None:
        """Start a run.

        Args:
            advance: called now, and after every operation.
        """
        self._advance = advance or _silent
        self._done, self._last = 0, time.perf_counter()
        self._advance(0.0, self._label())

    def step(self) -> None:
        """Note that an operation has ended."""
        now = time.perf_counter()
        layer = self._current()
        if layer is not None:
            self.seconds[layer] += now - self._last
        self._done, self._last = self._done + 1, now
        seconds = 0.0 if layer is None else self.layers[layer].seconds / self._steps[layer]
        self._advance(seconds, self._label())

    def _current(self) -> int | None:
        """Return the layer of the next operation; None if inputs of a higher level caused an additional
        step."""
        return self._layer.get(self._order[self._done]) if self._done < len(self._order) else None

    def _label(self) -> str:
        """Return the label of the next layer."""
        layer = self._current()
        if layer is None:
            return ""
        return f"layer {layer + 1} of {len(self.layers)}, {self.layers[layer].name}"

    def by_kind(self, runs: int) -> list[dict[str, str | int | float]]:
        """Return for each kind of layer its number, rotations, key switches without bootstraps, and seconds
        per run, measured and predicted."""
        rows: list[dict[str, str | int | float]] = []
        for kind in dict.fromkeys(layer.kind for layer in self.layers):
            chosen = [number for number, layer in enumerate(self.layers) if layer.kind == kind]
            rows.append(
                {
                    "kind": kind,
                    "layers": len(chosen),
                    "rotations": sum(self.layers[number].rotations for number in chosen),
                    "key_switches": sum(self._switches[number] for number in chosen),
                    "seconds": sum(self.seconds[number] for number in chosen) / runs,
                    "predicted": sum(self.layers[number].seconds for number in chosen),
                }
            )
        return rows
