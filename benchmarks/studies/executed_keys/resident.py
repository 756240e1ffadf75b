"""Keys in memory while they are used: all of a plan, or those of some instructions at a time.

Diagonals are encoded before the run or, where not all keys are in memory, before the instruction that takes
them.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Sequence
from dataclasses import dataclass

import keywright as kw
from keywright import compiler
from keywright.plan.keys.execution import PlanExecution
from keywright.program.instructions import Instruction
from keywright.runtime.encrypted.backend import EncryptedBackend, Value

PARTS = ("linear", "bootstrap", "rest")
"""Of a run: linear layers (rotations, and the products with diagonals that are done with them), bootstraps,
and everything else: products, polynomials, sums."""
LINEAR = ("linear_transform", "rotate")


@dataclass(frozen=True)
class Segment:
    """Instructions that follow each other, and all keys that they use."""

    instructions: frozenset[int]
    specs: tuple[kw.KeySpec, ...]

    @property
    def bytes(self) -> int:
        """Of the keys in memory."""
        return sum(spec.bytes for spec in self.specs)


def segments(execution: PlanExecution, most: int) -> list[Segment]:
    """As few segments as keys of at most so many bytes allow; one instruction may take more."""
    segments: list[Segment] = []
    for index, steps in sorted(execution.instruction_keys.items()):
        specs = dict.fromkeys(spec for step in steps for spec in step)
        if segments:
            both = dict.fromkeys([*segments[-1].specs, *specs])
            if sum(spec.bytes for spec in both) <= most:
                segments[-1] = Segment(segments[-1].instructions | {index}, tuple(both))
                continue
        segments.append(Segment(frozenset({index}), tuple(specs)))
    return segments


class _Backend(EncryptedBackend):
    """Has a run prepare each instruction."""

    def __init__(
        self,
        run: Run,
        evaluator: kw.Evaluator,
        bootstrappers: Sequence[kw.Bootstrapper],
        *,
        plan: PlanExecution,
    ) -> None:
        super().__init__(evaluator, bootstrappers, plan=plan)
        self._run = run

    def before(self, step: Instruction, operands: list[Value]) -> None:
        """Have the run prepare the instruction."""
        self._run.before(step)
        super().before(step, operands)


class Run:
    """A program on ciphertexts, with a clock for each part that stands still while keys are made.

    Args:
        program: what runs.
        execution: of its keys.
        bootstrappers: of its bootstraps.
        generator: makes keys.
        most: bytes of keys in memory at once.
        threads: of the evaluation; keys are made with `key_threads`.

    Attributes:
        seconds: wall time of each of `PARTS`.
        processor_seconds: time of this process on processors of each.
        made_seconds: spent on making keys.
    """

    def __init__(
        self,
        program: compiler.Program,
        execution: PlanExecution,
        bootstrappers: Sequence[kw.Bootstrapper],
        generator: kw.KeyGenerator,
        most: int,
        *,
        threads: int,
        key_threads: int,
    ) -> None:
        self.program, self.execution, self.generator = program, execution, generator
        self.segments = segments(execution, most)
        self._segment_of = {i: segment for segment in self.segments for i in segment.instructions}
        self._places = {step.result: index for index, step in enumerate(program.instructions)}
        self._current: Segment | None = None
        self._threads, self._key_threads = threads, key_threads
        self.seconds = dict.fromkeys(PARTS, 0.0)
        self.processor_seconds = dict.fromkeys(PARTS, 0.0)
        self.made_seconds = 0.0
        self._part = "rest"
        self._since = self._on_processor = 0.0
        empty = kw.Evaluator(execution.parameters, kw.EvaluationKeys(execution.parameters))
        self.backend = _Backend(self, empty, bootstrappers, plan=execution)
        self._whole = len(self.segments) == 1
        if self._whole:
            self.backend.prepare(program)
        if self._whole:
            self._make(self.segments[0])

    def run(self, inputs: Sequence[kw.Ciphertext]) -> list[kw.Ciphertext]:
        """The encrypted result."""
        kw.set_threads(self._threads)
        self._begin("rest")
        results = self.backend.run(self.program, inputs)
        self._end()
        return results

    def before(self, step: Instruction) -> None:
        """Make the keys and diagonals of an instruction where not all are in memory, and start its clock."""
        self._end()
        segment = self._segment_of.get(self._places[step.result])
        if segment is not None and segment is not self._current:
            self._make(segment)
            kw.set_threads(self._threads)
        if not self._whole:
            self.backend.forget_transforms()
            self.backend.prepare(self.program, steps=[step])
        part = "bootstrap" if step.opcode == "bootstrap" else "rest"
        self._begin("linear" if step.opcode in LINEAR else part)

    def _begin(self, part: str) -> None:
        self._part, self._since, self._on_processor = part, time.perf_counter(), time.process_time()

    def _end(self) -> None:
        self.seconds[self._part] += time.perf_counter() - self._since
        self.processor_seconds[self._part] += time.process_time() - self._on_processor

    def _make(self, segment: Segment) -> None:
        begin = time.perf_counter()
        parameters = self.execution.parameters
        self.backend.evaluator = kw.Evaluator(parameters, kw.EvaluationKeys(parameters))
        gc.collect()
        kw.set_threads(self._key_threads)
        keys = self.generator.evaluation_keys(specs=list(segment.specs), relinearization=False)
        followed = self.execution.follow_part(keys, segment.instructions)
        self.backend.evaluator = kw.Evaluator(parameters, followed)
        self._current = segment
        self.made_seconds += time.perf_counter() - begin
