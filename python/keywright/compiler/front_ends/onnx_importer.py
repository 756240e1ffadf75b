"""Imports an ONNX model as a `Graph`, and refuses what has no encrypted form."""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from keywright.compiler.graph.graph import Graph, Input, Linear
from keywright.compiler.graph.sparse import SparseMatrix
from keywright.compiler.limits import MAX_ELEMENTS, require_elements
from keywright.errors import RefusalError
from keywright.errors.refusals.operators import dynamic_shape, no_batch_axis, unsupported_operator
from keywright.program.arrays import Shape
from keywright.program.client.last_steps import ONLY_HERE
from keywright.program.stored_tensors import array_of

from .operator_context import BITS, FLOATS, DataClaims, of_sample
from .operators import ANY_ORDER, MASKABLE, OPERATORS, Constant, EncryptedValue, Operand, OperatorContext
from .operators.gating.gates import GATED, as_gates, as_numbers, limited
from .operators.gating.required_bits import required_bits
from .parts.integers import require_exact
from .reference import Reference

DOMAINS = ("", "ai.onnx", "ai.onnx.ml")
AT_THE_END = (
    "it is supported only at the end of a model, behind encrypted steps, where the client computes it after "
    "decryption"
)
LOOPS = (
    "loops and branches have no encrypted form; write the steps out, in Keras by unroll=True of the "
    "layer, or export RNN, GRU and LSTM as these operators"
)
OPEN_SIZE = (
    "the size of its result depends on encrypted values; end the model before it, and compute the rest after "
    "decryption"
)
RUNTIME = "it is no operator of ONNX; export the model without optimisations for a runtime"
RANDOM = "predictions need no random numbers; export the model in evaluation mode"
ADVICE = {
    operator: advice
    for operators, advice in [
        ("ArgMax ArgMin Hardmax LogSoftmax TopK", AT_THE_END),
        ("If Loop Scan", LOOPS),
        ("Compress NonMaxSuppression NonZero Unique", OPEN_SIZE),
        ("Bernoulli Multinomial RandomNormal RandomNormalLike RandomUniform RandomUniformLike", RANDOM),
        ("DFT STFT", "multiply by the matrix of the transform (MatMul), or slide its rows (Conv)"),
    ]
    for operator in operators.split()
}


@dataclass(frozen=True, eq=False)
class ImportedModel:
    """An imported model.

    Attributes:
        graph: for one sample.
        scores: shapes of a sample's results, as the model has them, with the batch; the graph's output has
            them one behind the other.
        reasons: why the model cannot be compiled. If there are any, the graph only serves to count levels.
        claims: what holds for the calibration data, and was taken from them.
        known: the constants that were asked for.
    """

    graph: Graph
    scores: tuple[Shape, ...]
    reasons: list[RefusalError]
    claims: DataClaims
    known: Mapping[str, NDArray[np.generic]]

    @property
    def output_shape(self) -> Shape:
        """The result's shape without the batch."""
        if len(self.scores) != 1:
            return (sum(math.prod(shape) for shape in self.scores),)
        return of_sample(self.scores[0])


def import_model(
    model: onnx.ModelProto,
    halvings: Mapping[str, int] | None = None,
    requested: Collection[str] = (),
    bits: NDArray[np.bool_] | None = None,
) -> ImportedModel:
    """Return the model's graph and every reason why it cannot be compiled.

    A refused node is replaced by a layer without weights of the shape that ONNX infers, so that the rest is
    still examined.

    Args:
        halvings: of the operand of each softmax, by node; none by default.
        requested: names of constants to return.
        bits: which elements of the input are 0 or 1, (*input_shape,); none by default. They can be a mask.
    """
    return _Importer(model, halvings or {}, requested, bits).run()


class _Importer:
    def __init__(
        self,
        model: onnx.ModelProto,
        halvings: Mapping[str, int],
        requested: Collection[str],
        bits: NDArray[np.bool_] | None,
    ) -> None:
        self.model, self.halvings, self.requested, self.bits = model, halvings, requested, bits
        self.graph = Graph()
        self.reasons: list[RefusalError] = []
        self.claims = DataClaims(None if bits is None else bits.ravel())
        self.values: dict[str, Operand] = {}
        self.reference = Reference(model)
        self.batch = 1
        self.alone: dict[str, int] = {}  # sizes of inputs whose only axis is not open
        self.scores: tuple[Shape, ...] = ()

    def run(self) -> ImportedModel:
        self._read()
        present = {name: self.values[name] for name in self.requested if name in self.values}
        known = {name: value.array for name, value in present.items() if isinstance(value, Constant)}
        if missing := sorted(set(self.requested) - set(known)):
            self.reasons.append(
                RefusalError(f"{missing[0]!r}, which the client's last steps read, is not a constant")
            )
        if self.reasons and len(self.alone) == 1:  # operators would not fit one number as a sample
            ((name, size),) = self.alone.items()
            self.reasons = [reason for reason in self.reasons if reason.code != "attribute"]
            self.reasons.insert(0, no_batch_axis(name, (size,), calibrated=False))
        if not self.reasons:
            self.claims.required = required_bits(self.graph, self.claims.relied, self.claims.folded)
        return ImportedModel(self.graph, self.scores, self.reasons, self.claims, known)

    def _read(self) -> None:
        body = self.model.graph
        for tensor in body.initializer:
            try:
                self._constant(tensor.name, array_of(tensor))
            except RefusalError as reason:
                self.reasons.append(reason)
        inputs = [value for value in body.input if value.name not in self.values]
        if len(inputs) != 1:
            read = {name for node in body.node for name in node.input} | {value.name for value in body.output}
            if any(entry.HasField("g") for node in body.node for entry in node.attribute):
                read |= {value.name for value in inputs}  # the graphs of loops and branches may read them
            self.reasons.append(_several_inputs([value.name for value in inputs], read))
        for value in inputs:
            try:
                declared = self._declared_shape(value)
            except RefusalError as refusal:  # it is too large to go on
                self.reasons.append(refusal)
                return
            if declared is None:  # shapes that follow from it would be wrong: operators alone are examined
                continue
            number = self.graph.add(Input(declared))
            if self.bits is not None and self.bits.shape != declared:
                self.claims.bits = None  # calibration data of another shape are refused where they are read
            known = self.claims.bits
            numbers = BITS if known is not None and known.size and known.all() else None
            self.values[value.name] = EncryptedValue(number, (1, *declared), numbers=numbers)
        self.inferred, self.kinds = self._inferred()
        for index, node in enumerate(body.node):
            self._node(node, node.name or f"{node.op_type}_{index}")
        outcome = []
        for value in body.output:
            result = self.values.get(value.name)
            if isinstance(result, EncryptedValue):
                if result.hides:
                    text = f"output {value.name!r} has {result.hiding}, and no Softmax behind it"
                    self.reasons.append(RefusalError(text))
                outcome.append(self._row_major(result, value.name))
            elif not self.reasons:
                self.reasons.append(RefusalError(f"output {value.name!r} does not depend on the input"))

        if len(outcome) == len(body.output):
            self.graph.output = outcome[0].number if len(outcome) == 1 else self._joined(outcome)
            self.scores = tuple(result.shape for result in outcome)

    def _joined(self, results: list[EncryptedValue]) -> int:
        """Return the number of a value with the elements of several results, one behind the other."""
        end = OperatorContext(self.graph, onnx.NodeProto(op_type="Concat"), "outputs", [], self.reference)
        ends = np.cumsum([0, *(result.size for result in results)])
        size, terms = int(ends[-1]), []
        for result, first in zip(results, ends, strict=False):
            own = np.arange(result.size)
            ones = np.ones(result.size)
            matrix = SparseMatrix.from_distinct((size, result.size), first + own, own, ones)
            terms.append((result, matrix))
        return end.total(terms, (1, size)).number

    def _row_major(self, result: EncryptedValue, name: str) -> EncryptedValue:
        """Return the result with its elements in row-major order."""
        end = OperatorContext(self.graph, onnx.NodeProto(op_type="Identity"), name, [result], self.reference)
        return end.row_major(result)

    def _constant(self, name: str, array: NDArray[np.generic]) -> None:
        """Note a constant, and what is wrong with it; the rest of the model is then examined with zeros."""
        wrong = ""
        if array.dtype.kind == "c":
            wrong = "are complex numbers"
        elif array.dtype.kind not in "biuOSUT" and not _usable(array):
            wrong = "hold values that are not finite"
        if wrong:
            self.reasons.append(RefusalError(f"weights {name!r} {wrong}"))
            array = np.zeros(array.shape)
        self.values[name] = Constant(array)

    def _inferred(self) -> tuple[dict[str, Shape], dict[str, int]]:
        """Return the shapes, for one sample, and the types of values, as far as they are known."""
        body = self.model.graph
        kinds = {value.name: value.type.tensor_type.elem_type for value in body.input}
        try:
            inferred = onnx.shape_inference.infer_shapes(self.model).graph
        except (onnx.shape_inference.InferenceError, ValueError) as error:
            self.reasons.append(RefusalError(f"shapes do not fit: {error}"))
            return {}, kinds
        table: dict[str, Shape] = {}
        for value in [*inferred.value_info, *inferred.output]:
            kinds[value.name] = value.type.tensor_type.elem_type
            sizes = [dimension.dim_value for dimension in value.type.tensor_type.shape.dim]
            if sizes and sizes[0] in (0, self.batch):
                sizes[0] = 1
            floats = value.type.tensor_type.elem_type in FLOATS
            if floats and all(size > 0 for size in sizes) and math.prod(sizes) <= MAX_ELEMENTS:
                table[value.name] = tuple(sizes)
        return table, kinds

    def _declared_shape(self, value: onnx.ValueInfoProto) -> Shape | None:
        """Return the shape of one sample, or None with a reason if it is not fixed. A fixed batch size is
        noted, and the batch is processed sample by sample."""
        dimensions = list(value.type.tensor_type.shape.dim)
        sizes = [d.dim_value if d.HasField("dim_value") else d.dim_param or "?" for d in dimensions]
        fixed = tuple(size for size in sizes[1:] if isinstance(size, int) and size > 0)
        if not sizes or len(fixed) < len(sizes) - 1:
            self.reasons.append(dynamic_shape(value.name, sizes))
            return None
        if isinstance(sizes[0], int) and sizes[0] > 0:
            self.batch = sizes[0]
            if len(sizes) == 1 and self.batch > 1:
                self.alone[value.name] = self.batch
        require_elements(f"input {value.name!r}", fixed)
        return fixed

    def _node(self, node: onnx.NodeProto, name: str) -> None:
        if any(source and source not in self.values for source in node.input):
            self._check_operator(node, name)  # an operand was refused and its shape is unknown
            return
        sources = [self.values[source] if source else None for source in node.input]
        if node.op_type == "Attention" and len(sources) > 3 and self.kinds.get(node.input[3]) in FLOATS:
            sources[3] = _without_numbers(sources[3])  # it is added to the logits, and hides nothing
        try:
            if any(entry.HasField("g") for entry in node.attribute):  # it may read encrypted values
                raise _unsupported(node, name)
            if all(isinstance(source, Constant) or source is None for source in sources):
                self._fold(node, name, sources)
                return
            halvings = self.halvings.get(name, 0)
            context = OperatorContext(
                self.graph, node, name, sources, self.reference, self.batch, halvings, self.claims
            )
            handler = OPERATORS.get(node.op_type) if node.domain in DOMAINS else None
            if handler is None:
                raise _unsupported(node, name)
            kinds = [
                self.kinds.get(source, 0)
                for source in node.input
                if isinstance(self.values.get(source), EncryptedValue)
            ]
            require_exact(context, kinds)
            if node.op_type not in ANY_ORDER:
                context.row_major_operands()
            first = sources[0]
            gate = node.op_type in GATED and isinstance(first, EncryptedValue) and first.gate
            results: Operand | tuple[Operand, ...] | None = limited(context)
            if results is None:
                if node.op_type not in MASKABLE and not gate:
                    context.refuse_masked()
                results = as_numbers(context, handler(context))
            context.check_all_attributes_read()
            if gate:
                results = as_gates(results)
            self.values.update(
                zip(node.output, results if isinstance(results, tuple) else (results,), strict=False)
            )
        except RefusalError as reason:
            self.reasons.append(reason)
            self._stand_in(node, sources)

    def _check_operator(self, node: onnx.NodeProto, name: str) -> None:
        known = node.op_type in OPERATORS or node.op_type in ONLY_HERE or node.op_type == "Constant"
        if not known:  # a client's operator may be valid, except for a refused node before it
            self.reasons.append(_unsupported(node, name))

    def _stand_in(self, node: onnx.NodeProto, sources: list[Operand | None]) -> None:
        source = next((s for s in sources if isinstance(s, EncryptedValue)), None)
        shape = self.inferred.get(node.output[0])
        if source is None or shape is None:
            return
        size = math.prod(shape)
        nothing = np.zeros(0, np.int64)
        matrix = SparseMatrix((size, source.size), nothing, nothing, np.zeros(0))
        number = self.graph.add(Linear(of_sample(shape), (source.number,), (matrix,), np.zeros(size)))
        self.values[node.output[0]] = EncryptedValue(number, shape)

    def _fold(self, node: onnx.NodeProto, name: str, sources: list[Operand | None]) -> None:
        """Evaluate a node of constants."""
        feeds = {
            source: constant.array
            for source, constant in zip(node.input, sources, strict=True)
            if isinstance(constant, Constant)
        }
        results = self.reference.run(node, name, feeds)
        for output, result in zip([output for output in node.output if output], results, strict=True):
            self._constant(output, result)


def _several_inputs(names: list[str], read: Collection[str]) -> RefusalError:
    """Return the refusal of a model that has another number of inputs than one: several that are read have
    become one before.

    Args:
        read: names of the values that nodes read, and of the outputs.
    """
    if unread := [name for name in names if name not in read]:
        listed = ", ".join(map(repr, unread[:5]))
        return RefusalError(f"nothing in the model reads its input {listed}; remove it from graph.input")
    named = f" ({', '.join(map(repr, names[:5]))}{', ...' if len(names) > 5 else ''})" if names else ""
    advice = ""
    if any("past" in name or "cache" in name for name in names):
        advice = "; export it without cached keys (use_cache=False), for whole sequences"
    elif len(names) > 1:
        advice = "; join them to one, as a mask to the features of each token, and take them apart inside it"
    return RefusalError(f"the model has {len(names)} inputs{named}; it must have one{advice}")


def _without_numbers(value: Operand | None) -> Operand | None:
    """Return an operand of which nothing is known."""
    return replace(value, numbers=None) if isinstance(value, EncryptedValue) and not value.gate else value


def _usable(array: NDArray[np.generic]) -> bool:
    """Whether constants are finite, or minus infinity, as masks are."""
    values: Any = array if array.dtype.kind == "f" else np.asarray(array, np.float64)
    return bool((np.isfinite(values) | np.isneginf(values)).all())


def _unsupported(node: onnx.NodeProto, name: str) -> RefusalError:
    advice = RUNTIME if node.domain not in DOMAINS else ADVICE.get(node.op_type, "")
    return unsupported_operator(name, node.op_type, advice)
