"""Time of each layer of a program while it runs."""

import time
from collections.abc import Callable

from keywright.nn.compiled.network import CompiledNetwork


class LayerClock:
    """Adds up the time of every layer; pass `step` as ``on_step`` of `EncryptedBackend`.

    Args:
        program: what runs, on inputs at its input level.
        advance: called after every operation, with 1: a progress bar.

    Attributes:
        seconds: of each of ``program.layers``, summed over runs.
    """

    def __init__(self, program: CompiledNetwork, advance: Callable[[int], object] = lambda _: None) -> None:
        self._layer = {
            index: number
            for number, layer in enumerate(program.layers)
            for index in range(layer.start, layer.stop)
        }
        self._order = [index for index, step in enumerate(program.instructions) if step.opcode != "input"]
        self._advance, self._done, self._last = advance, 0, 0.0
        self.layers = program.layers
        self.seconds = [0.0] * len(program.layers)

    def start(self) -> None:
        """A run begins."""
        self._done, self._last = 0, time.perf_counter()

    def step(self) -> None:
        """An operation has ended."""
        now = time.perf_counter()
        layer = self._layer.get(self._order[self._done])
        if layer is not None:
            self.seconds[layer] += now - self._last
        self._done, self._last = self._done + 1, now
        self._advance(1)

    def by_kind(self, runs: int) -> list[dict[str, str | int | float]]:
        """For each kind of layer: how many there are, their rotations, and seconds of a run, measured and
        predicted."""
        rows: list[dict[str, str | int | float]] = []
        for kind in dict.fromkeys(layer.kind for layer in self.layers):
            chosen = [number for number, layer in enumerate(self.layers) if layer.kind == kind]
            rows.append(
                {
                    "kind": kind,
                    "layers": len(chosen),
                    "rotations": sum(self.layers[number].rotations for number in chosen),
                    "seconds": sum(self.seconds[number] for number in chosen) / runs,
                    "predicted": sum(self.layers[number].seconds for number in chosen),
                }
            )
        return rows
