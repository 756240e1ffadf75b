"""RNN, GRU and LSTM, unrolled: one step after the other, with polynomials for sigmoids and tanh."""

from dataclasses import dataclass

import numpy as np

from keywright.compiler.activations.functions import ACTIVATIONS
from keywright.compiler.front_ends.operator_context import Constant, EncryptedValue, OperatorContext, picking
from keywright.compiler.graph.sparse import Indices, SparseMatrix
from keywright.compiler.limits import MAX_ENTRIES, require_at_most
from keywright.program.arrays import Vector

MAX_STEPS = 1 << 10
"""Maximum length of a sequence."""

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
DEFAULTS = {"RNN": ["Tanh"], "GRU": ["Sigmoid", "Tanh"], "LSTM": ["Sigmoid", "Tanh", "Tanh"]}
DIRECTIONS = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}

State = EncryptedValue | Vector
"""A state, encrypted or still constant: (hidden,) elements."""


def recurrent(context: OperatorContext) -> tuple[EncryptedValue, ...]:
    """Return all hidden states, (steps, directions, 1, hidden), the last ones, (directions, 1, hidden), and
    for LSTM the last cells."""
    source = context.encrypted(0)
    if len(source.shape) != 3 or source.shape[1] != 1:
        raise context.refuse("shape of operand 0", source.shape, "(steps, 1, features)")
    if source.shape[0] > MAX_STEPS:
        raise context.refuse("steps", source.shape[0], f"at most {MAX_STEPS}")
    for name, allowed in (("layout", 0), ("clip", 0.0), ("input_forget", 0)):
        if (value := context.attribute(name, allowed)) != allowed:
            raise context.refuse(name, value, f"{allowed}")
    if context.operand(4) is not None and not _full(context, source.shape[0]):
        raise context.refuse("sequence_lens", "shorter sequences", "the whole sequence")
    if context.operand(7) is not None and np.any(context.required_constant(7)):
        raise context.refuse("operand 7", "peepholes", "none")
    direction = context.attribute("direction", "forward")
    if direction not in DIRECTIONS:
        raise context.refuse("direction", direction, ", ".join(DIRECTIONS))
    ways = [_Way(context, number, back) for number, back in enumerate(DIRECTIONS[direction])]
    runs = [way.run(source) for way in ways]
    steps, hidden = source.shape[0], ways[0].hidden
    shape = (steps, len(ways), 1, hidden)
    every = np.arange(int(np.prod(shape))).reshape(steps, len(ways), hidden)
    states = [(value, every[t, d]) for d, run in enumerate(runs) for t, value in enumerate(run.states)]
    lasts = [run.states[0 if way.backwards else -1] for way, run in zip(ways, runs, strict=True)]
    results = [_placed(context, states, shape), _joined(context, lasts, hidden)]
    if context.operator == "LSTM":
        results.append(_joined(context, [run.cell for run in runs if run.cell is not None], hidden))
    return tuple(results)


def _full(context: OperatorContext, steps: int) -> bool:
    given = context.operand(4)
    return isinstance(given, Constant) and bool((given.array == steps).all())


def _joined(context: OperatorContext, values: list[EncryptedValue], hidden: int) -> EncryptedValue:
    """Return one value for each direction as (directions, 1, hidden)."""
    places = [(value, d * hidden + np.arange(hidden)) for d, value in enumerate(values)]
    return _placed(context, places, (len(values), 1, hidden))


def _placed(
    context: OperatorContext, values: list[tuple[EncryptedValue, Indices]], shape: tuple[int, ...]
) -> EncryptedValue:
    """Place the elements of values at positions of the result."""
    size = int(np.prod(shape))
    if len(values) == 1:
        return EncryptedValue(values[0][0].number, shape)
    terms = []
    for value, places in values:
        chosen = np.full(size, -1)
        chosen[places] = np.arange(value.size)
        terms.append((value, picking(value, chosen)))
    return context.total(terms, shape)


@dataclass(frozen=True)
class _Run:
    """Hidden states by step, and the last cell."""

    states: list[EncryptedValue]
    cell: EncryptedValue | None


class _Way:
    """One direction: its weights, by gate, (gates, hidden, ...)."""

    def __init__(self, context: OperatorContext, number: int, backwards: bool) -> None:
        self.context, self.backwards = context, backwards
        self.kind, gates = context.operator, GATES[context.operator]
        self.weights = self._gates(1, number, gates)
        self.recurrence = self._gates(2, number, gates)
        self.hidden = self.weights.shape[1]
        if context.attribute("hidden_size", self.hidden) != self.hidden:
            raise context.refuse("hidden_size", context.attribute("hidden_size", 0), f"{self.hidden}")
        bias = context.constant(3)
        zeros = np.zeros((2 * gates, self.hidden))
        both = zeros if bias is None else bias[number].reshape(2 * gates, self.hidden)
        self.input_bias, self.state_bias = both[:gates], both[gates:]
        count = len(DEFAULTS[self.kind])
        names = context.attribute("activations", DEFAULTS[self.kind] * (number + 1))
        self.functions = [name.capitalize() for name in names[number * count : (number + 1) * count]]
        if len(self.functions) != count or not {"Sigmoid", "Tanh", "Relu"} >= set(self.functions):
            raise context.refuse("activations", names, "Sigmoid, Tanh or Relu for each gate")
        self.late_reset = bool(context.attribute("linear_before_reset", 0))
        self.first, self.cell = (self._initial(index, number) for index in (5, 6))

    def _gates(self, index: int, number: int, gates: int) -> Vector:
        weights = self.context.required_constant(index)
        if weights.ndim != 3 or weights.shape[1] % gates:
            raise self.context.refuse(f"operand {index} of shape", weights.shape, "(directions, gates, size)")
        return np.asarray(weights[number].reshape(gates, -1, weights.shape[2]), np.float64)

    def _initial(self, index: int, number: int) -> State:
        value = self.context.operand(index)
        if isinstance(value, EncryptedValue):
            own = value.indices()[number]
            return self.context.select(value, own.reshape(1, -1))
        given = self.context.constant(index)
        if given is None:
            return np.zeros(self.hidden)
        if np.ptp(given[number], axis=0).any():
            raise self.context.refuse(f"operand {index}", "a state for each sample", "one for all")
        return np.asarray(given[number, 0], np.float64)

    def run(self, source: EncryptedValue) -> _Run:
        """Run all steps, forwards or backwards."""
        steps = source.shape[0]
        state, cell = self.first, self.cell
        states: list[EncryptedValue] = []
        require_at_most(f"node {self.context.name!r}", "entries", steps * self.weights.size, MAX_ENTRIES)
        for step in range(steps)[:: -1 if self.backwards else 1]:
            match self.kind:
                case "RNN":
                    state = self._function(0, self._affine(source, step, state, 0))
                case "GRU":
                    state = self._gru(source, step, state)
                case _:
                    state, cell = self._lstm(source, step, state, cell)
            states.append(state)
        return _Run(
            states[::-1] if self.backwards else states, cell if isinstance(cell, EncryptedValue) else None
        )

    def _gru(self, source: EncryptedValue, step: int, state: State) -> EncryptedValue:
        """z h + (1 - z) n with n = tanh(W x + r R h), as n + z (h - n)."""
        update = self._function(0, self._affine(source, step, state, 0))
        reset = self._function(0, self._affine(source, step, state, 1))
        if self.late_reset:
            gated = self._times(reset, self._state_part(state, 2))
            new = self._sum([(self._input_part(source, step, 2), 1.0), (gated, 1.0)])
        else:
            new = self._affine(source, step, self._times(reset, state), 2)
        candidate = self._function(1, new)
        difference = self._sum([(state, 1.0), (candidate, -1.0)])
        return self._sum([(candidate, 1.0), (self._times(update, difference), 1.0)])

    def _lstm(
        self, source: EncryptedValue, step: int, state: State, cell: State
    ) -> tuple[EncryptedValue, EncryptedValue]:
        """Gates in the order input, output, forget, cell."""
        entering, leaving, kept = (
            self._function(0, self._affine(source, step, state, gate)) for gate in (0, 1, 2)
        )
        new = self._function(1, self._affine(source, step, state, 3))
        cell = self._sum([(self._times(kept, cell), 1.0), (self._times(entering, new), 1.0)])
        return self._times_value(leaving, self._function(2, cell)), cell

    def _affine(self, source: EncryptedValue, step: int, state: State, gate: int) -> EncryptedValue:
        """Return W x + R h + both biases."""
        parts: list[tuple[EncryptedValue, SparseMatrix]] = [(source, self._of_step(source, step, gate))]
        bias = self.input_bias[gate] + self.state_bias[gate]
        if isinstance(state, EncryptedValue):
            parts.append((state, SparseMatrix.from_dense(self.recurrence[gate])))
        else:
            bias = bias + self.recurrence[gate] @ state
        return self.context.total(parts, (1, self.hidden), bias)

    def _input_part(self, source: EncryptedValue, step: int, gate: int) -> EncryptedValue:
        matrix = self._of_step(source, step, gate)
        return self.context.total([(source, matrix)], (1, self.hidden), self.input_bias[gate])

    def _state_part(self, state: State, gate: int) -> State:
        matrix, bias = self.recurrence[gate], self.state_bias[gate]
        if not isinstance(state, EncryptedValue):
            return np.asarray(matrix @ state + bias, np.float64)
        return self.context.total([(state, SparseMatrix.from_dense(matrix))], (1, self.hidden), bias)

    def _of_step(self, source: EncryptedValue, step: int, gate: int) -> SparseMatrix:
        """Return the weights of a gate at the features of one step."""
        own = SparseMatrix.from_dense(self.weights[gate])
        columns = own.columns + step * source.shape[2]
        return SparseMatrix((self.hidden, source.size), own.rows, columns, own.values)

    def _function(self, index: int, value: EncryptedValue) -> EncryptedValue:
        name = self.functions[index]
        return self.context.function(value, ACTIVATIONS[name], name)

    def _times(self, gate: EncryptedValue, state: State) -> State:
        if isinstance(state, EncryptedValue):
            return self._times_value(gate, state)
        return self.context.scaled(gate, state) if state.any() else np.zeros(self.hidden)

    def _times_value(self, gate: EncryptedValue, value: EncryptedValue) -> EncryptedValue:
        return self.context.product(gate, value)

    def _sum(self, parts: list[tuple[State, float]]) -> EncryptedValue:
        """Return the sum of states times factors; one of each pair is encrypted."""
        bias = np.zeros(self.hidden)
        terms = []
        for state, factor in parts:
            if isinstance(state, EncryptedValue):
                terms.append((state, SparseMatrix.diagonal(np.full(self.hidden, factor))))
            else:
                bias = bias + factor * state
        return self.context.total(terms, (1, self.hidden), bias)
