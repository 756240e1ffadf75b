"""Rewrites operators into which onnxruntime's optimisers fuse others, in ONNX's own operators.

Source: onnxruntime, docs/ContribOperators.md. Some of these operators have no domain, as if they were ONNX's.
"""

import math
from collections.abc import Callable, Collection
from typing import Any

import numpy as np
import onnx
from numpy.typing import ArrayLike
from onnx import TensorProto, helper, numpy_helper

from keywright.errors.refusals.operators import unsupported_attribute

from .decomposed_operators import drop_unread
from .runtime_operators import DOMAIN, converted, ranks_of

LEAST_OPSET = 18
"""In whose operators the replacements are written, in which ReduceMean and Split take operands."""

NO_CACHE = "none: export the model for whole sequences, without cached keys (use_cache=False)"
ACTIVATED = {"Clip": ("least", "most"), "HardSigmoid": ("alpha", "beta"), "LeakyRelu": ("alpha",)}
"""Activations whose attributes a fused convolution lists without their names."""


class FusedOperators:
    """Appends the replacements of nodes to a graph.

    Args:
        model: whose graph they are appended to, and which holds all other nodes.
    """

    def __init__(self, model: onnx.ModelProto) -> None:
        self.graph = model.graph
        self.counted: dict[str, str] = {}  # the masks of which values are the numbers of tokens
        self.ranks = ranks_of(model)

    def node(self, node: onnx.NodeProto) -> None:
        """Append the replacement of a node, or the node if it has none.

        Raises:
            RefusalError: an attribute or operand has no such form.
        """
        if node.domain != DOMAIN or node.op_type not in RULES:
            self.graph.node.append(node)
            sums = node.op_type == "ReduceSum" and self.ranks.get(node.output[0]) == 1
            if sums or node.op_type == "Cast":
                self.counted[node.output[0]] = self.counted.get(node.input[0], node.input[0])
            return
        attributes = {entry.name: helper.get_attribute_value(entry) for entry in node.attribute}
        RULES[node.op_type](self, node, attributes)
        for name, value in attributes.items():  # rules take what they read
            raise unsupported_attribute(node.name, node.op_type, name, value, "it to be absent")

    def _add(self, operator: str, inputs: list[str], output: str, **attributes: Any) -> str:
        self.graph.node.append(helper.make_node(operator, inputs, [output], output, **attributes))
        return output

    def _constant(self, name: str, value: ArrayLike, kind: type[np.generic] = np.float32) -> str:
        self.graph.initializer.append(numpy_helper.from_array(np.asarray(value, kind), name))
        return name

    def _scaled(self, source: str, factor: float, output: str) -> str:
        return self._add("Mul", [source, self._constant(f"{output}/factor", factor)], output)

    def _sum(self, names: Collection[str], output: str) -> str:
        """Append the sum of the operands that are there."""
        first, *others = filter(None, names)
        for place, other in enumerate(others):
            first = self._add("Add", [first, other], f"{output}/{place}")
        return first

    # Activations

    def gelu(self, node: onnx.NodeProto, _: dict[str, Any]) -> None:
        """x (1 + erf(x / sqrt(2))) / 2."""
        output = node.output[0]
        source = self._sum(node.input, f"{output}/sum")
        erf = self._add("Erf", [self._scaled(source, math.sqrt(0.5), f"{output}/scaled")], f"{output}/erf")
        self._halved(source, erf, output)

    def fast_gelu(self, node: onnx.NodeProto, _: dict[str, Any]) -> None:
        """x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2."""
        output = node.output[0]
        source = self._sum(node.input, f"{output}/sum")
        cube = self._add("Pow", [source, self._constant(f"{output}/three", 3)], f"{output}/cube")
        inner = self._sum([source, self._scaled(cube, 0.044715, f"{output}/small")], f"{output}/inner")
        inner = self._scaled(inner, math.sqrt(2 / math.pi), f"{output}/scaled")
        self._halved(source, self._add("Tanh", [inner], f"{output}/tanh"), output)

    def _halved(self, source: str, share: str, output: str) -> None:
        one = self._constant(f"{output}/one", 1)
        product = self._add("Mul", [source, self._sum([share, one], f"{output}/share")], f"{output}/product")
        self._scaled(product, 0.5, output)

    def quick_gelu(self, node: onnx.NodeProto, attributes: dict[str, Any]) -> None:
        """x sigmoid(alpha x)."""
        source, output = node.input[0], node.output[0]
        scaled = self._scaled(source, attributes.pop("alpha", 1.702), f"{output}/scaled")
        self._add("Mul", [source, self._add("Sigmoid", [scaled], f"{output}/sigmoid")], output)

    def activated(self, node: onnx.NodeProto, attributes: dict[str, Any]) -> None:
        """An operator with an activation behind it."""
        output, result = node.output[0], f"{node.output[0]}/result"
        activation = attributes.pop("activation", b"").decode()
        numbers = attributes.pop("activation_params", None)
        names = ACTIVATED.get(activation, ())
        given = {} if numbers is None else dict(zip(names, numbers, strict=True))
        named = [name for name in attributes if name.startswith("activation_")]
        given |= {name.removeprefix("activation_"): attributes.pop(name) for name in named}
        inputs, own = list(node.input), dict(attributes)
        attributes.clear()
        if node.op_type == "FusedConv" and len(inputs) > 3:
            inputs, last = inputs[:3], inputs[3]
            self._add("Conv", inputs, f"{result}/apart", **own)
            self._add("Add", [f"{result}/apart", last], result)
        else:
            self._add(node.op_type.removeprefix("Fused"), inputs, result, **own)
        if activation == "Clip":
            limits = [self._constant(f"{output}/{name}", given[name]) for name in names]
            self._add("Clip", [result, *limits], output)
        else:
            self._add(activation or "Identity", [result], output, **given)

    # Products

    def product(self, node: onnx.NodeProto, attributes: dict[str, Any]) -> None:
        """A product of two operands, of which the last two axes are exchanged, times a number."""
        factor, output = attributes.pop("alpha", 1.0), node.output[0]
        operands, terms = list(node.input), ["ij", "jk"]
        for place, letter in enumerate("AB"):
            if not attributes.get(f"transBatch{letter}", 0):
                attributes.pop(f"transBatch{letter}", None)
            if attributes.pop(f"trans{letter}", 0):
                if self.ranks.get(operands[place]) == 2:
                    turned = f"{output}/{letter}"
                    operands[place] = self._add("Transpose", [operands[place]], turned, perm=[1, 0])
                else:
                    terms[place] = terms[place][::-1]
        result = output if factor == 1 else f"{output}/product"
        if terms == ["ij", "jk"]:
            self._add("MatMul", operands, result)
        else:  # of any number of axes
            stacks = ["" if self.ranks.get(name) == 2 else "..." for name in node.input]
            left, right = (stack + term for stack, term in zip(stacks, terms, strict=True))
            self._add("Einsum", operands, result, equation=f"{left},{right}->{max(stacks)}ik")
        if factor != 1:
            self._scaled(result, factor, output)

    # Normalisation and embeddings

    def normalization(self, node: onnx.NodeProto, attributes: dict[str, Any]) -> None:
        """LayerNormalization, which runtimes read in models of older opsets, too."""
        self._normalized(list(node.input), list(node.output), attributes)

    def _normalized(self, inputs: list[str], outputs: list[str], attributes: dict[str, Any]) -> None:
        own = {"axis": attributes.pop("axis", -1), "epsilon": attributes.pop("epsilon", 1e-5)}
        attributes.pop("stash_type", 1)
        while not outputs[-1]:
            outputs.pop()
        self.graph.node.append(helper.make_node("LayerNormalization", inputs, outputs, outputs[0], **own))

    def root_mean_square(self, node: onnx.NodeProto, attributes: dict[str, Any]) -> None:
        """x scale / sqrt(mean(x^2) + epsilon), over the last axes."""
        (source, scale, *_), output = node.input, node.output[0]
        attributes.pop("stash_type", 1)
        if (axis := attributes.pop("axis", -1)) != -1:
            raise unsupported_attribute(node.name, node.op_type, "axis", axis, "-1, the last")
        epsilon = self._constant(f"{output}/epsilon", attributes.pop("epsilon", 1e-5))
        square = self._add("Mul", [source, source], f"{output}/square")
        last = self._constant(f"{output}/last", [-1], np.int64)
        mean = self._add("ReduceMean", [square, last], f"{output}/mean")
        root = self._add("Sqrt", [self._sum([mean, epsilon], f"{output}/shifted")], f"{output}/root")
        quotient = self._add("Div", [source, root], f"{output}/quotient")
        self._add("Mul", [quotient, scale], output)

    def skip(self, node: onnx.NodeProto, attributes: dict[str, Any]) -> None:
        """A normalisation of a sum, which may be read, too."""
        simplified = node.op_type == "SkipSimplifiedLayerNormalization"
        first, skip, scale, *more = node.input
        bias, *added = ["", *more] if simplified else [*more, ""]
        outputs = [*node.output, "", "", ""]
        total = self._sum([first, skip, *added], f"{outputs[0]}/sum")
        if outputs[3]:
            self._add("Identity", [total], outputs[3])
        attributes.setdefault("epsilon", 1e-12)
        if simplified:
            self.root_mean_square(helper.make_node(node.op_type, [total, scale], outputs[:1]), attributes)
        else:
            self._normalized([total, scale, *filter(None, [bias])], outputs[:3], attributes)

    def embedding(self, node: onnx.NodeProto, attributes: dict[str, Any]) -> None:
        """Rows of tables by the ids of words, positions and types, summed and normalised. The number of
        tokens that a mask shows is read by Attention alone, which takes the mask in its place."""
        ids, types, words, places, kinds, scale, bias, mask, numbers = [*node.input, "", ""][:9]
        outputs = [*node.output, "", ""]
        attributes.pop("mask_index_type", 0)
        if numbers:
            rows = self._add("Gather", [places, numbers], f"{outputs[0]}/places")
        else:
            none = self._constant(f"{outputs[0]}/none", [0], np.int64)
            count = self._add("Shape", [ids], f"{outputs[0]}/count", start=1, end=2)
            rows = self._add("Slice", [places, none, count], f"{outputs[0]}/places")
        looked = [self._add("Gather", [words, ids], f"{outputs[0]}/words")]
        if types:
            looked.append(self._add("Gather", [kinds, types], f"{outputs[0]}/types"))
        total = self._sum([*looked, rows], f"{outputs[0]}/sum")
        if outputs[2]:
            self._add("Identity", [total], outputs[2])
        if mask and outputs[1]:
            self._add("Identity", [mask], outputs[1])
            self.ranks[outputs[1]] = 2
        attributes.setdefault("epsilon", 1e-12)
        self._normalized([total, scale, bias], outputs[:1], attributes)

    # Attention

    def attention(self, node: onnx.NodeProto, attributes: dict[str, Any]) -> None:
        """Projections by one matrix, and attention."""
        source, weights, bias, mask, past, logits = [*node.input, *[""] * 4][:6]
        self._without_cache(node, past)
        output = node.output[0]
        product = self._add("MatMul", [source, weights], f"{output}/projected")
        parts = self._parts(self._sum([product, bias], f"{output}/sum"), output, attributes)
        self._attended(node, parts, mask, logits, attributes)

    def heads(self, node: onnx.NodeProto, attributes: dict[str, Any]) -> None:
        """Attention of queries, keys and values that are projected before."""
        query, key, value, bias, mask, logits, *past = [*node.input, *[""] * 6][:8]
        self._without_cache(node, *past)
        if not key or not value or self.ranks.get(key, 3) != 3:
            raise unsupported_attribute(
                node.name,
                node.op_type,
                "keys and values",
                "packed or split",
                "operands of their own, of 3 axes",
            )
        parts = [query, key, value]
        if bias:
            own = self._parts(bias, f"{node.output[0]}/bias", {})
            parts = [
                self._sum(pair, f"{node.output[0]}/{place}")
                for place, pair in enumerate(zip(parts, own, strict=True))
            ]
        self._attended(node, parts, mask, logits, attributes)

    def _without_cache(self, node: onnx.NodeProto, *past: str) -> None:
        if any(past) or any(node.output[1:]):
            raise unsupported_attribute(node.name, node.op_type, "cached keys", "given", NO_CACHE)

    def _parts(self, joined: str, output: str, attributes: dict[str, Any]) -> list[str]:
        """Append the three parts of a value, along its last axis."""
        names = [f"{output}/{part}" for part in ("queries", "keys", "values")]
        sizes = attributes.pop("qkv_hidden_sizes", None)
        own: dict[str, Any] = {} if sizes else {"num_outputs": 3}
        inputs = [joined, *([self._constant(f"{output}/sizes", sizes, np.int64)] if sizes else [])]
        self.graph.node.append(helper.make_node("Split", inputs, names, f"{output}/split", axis=-1, **own))
        return names

    def _attended(
        self, node: onnx.NodeProto, parts: list[str], mask: str, logits: str, attributes: dict[str, Any]
    ) -> None:
        output, heads = node.output[0], attributes.pop("num_heads", 0)
        if not isinstance(heads, int) or heads < 1:
            raise unsupported_attribute(node.name, node.op_type, "num_heads", heads, "1 or more")
        apart = self._constant(f"{output}/apart", [0, 0, heads, -1], np.int64)
        orders = ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3])
        split = [self._add("Reshape", [part, apart], f"{output}/{place}") for place, part in enumerate(parts)]
        queries, keys, values = (
            self._add("Transpose", [part], f"{part}/heads", perm=order)
            for part, order in zip(split, orders, strict=True)
        )
        scores = self._add("MatMul", [queries, keys], f"{output}/products")
        if scale := attributes.pop("scale", 0.0):
            scores = self._scaled(scores, scale, f"{output}/scores")
        else:
            width = self._add("Shape", [queries], f"{output}/width", start=3, end=4)
            number = self._add("Cast", [width], f"{output}/number", to=TensorProto.FLOAT)
            root = self._add("Sqrt", [number], f"{output}/root")
            scores = self._add("Div", [scores, root], f"{output}/scores")
        attributes.pop("mask_filter_value", 0.0)
        biases = [logits, self._mask(node, mask)]
        if attributes.pop("unidirectional", 0):
            biases.append(self._causal(scores, output))
        shares = self._add("Softmax", [self._sum([scores, *biases], f"{output}/masked")], f"{output}/shares")
        mixed = self._add("MatMul", [shares, values], f"{output}/mixed")
        tokens = self._add("Transpose", [mixed], f"{output}/tokens", perm=[0, 2, 1, 3])
        together = self._constant(f"{output}/together", [0, 0, -1], np.int64)
        self._add("Reshape", [tokens, together], output)

    def _mask(self, node: onnx.NodeProto, mask: str) -> str:
        """Append 0 for the tokens that a mask shows, and minus infinity for others; "" without a mask. A
        number of tokens is read as the mask of which it is the sum."""
        if not mask:
            return ""
        mask = self.counted.get(mask, mask)
        axes = {2: [1, 2], 3: [1]}.get(self.ranks.get(mask, 0))
        if axes is None:
            raise unsupported_attribute(
                node.name, node.op_type, "a mask", "numbers of tokens", "1 for tokens and 0 for padding"
            )
        output = f"{node.output[0]}/mask"
        bits = self._add("Cast", [mask], f"{output}/bits", to=TensorProto.BOOL)
        places = self._constant(f"{output}/axes", axes, np.int64)
        spread = self._add("Unsqueeze", [bits, places], f"{output}/spread")
        ends = self._constant(f"{output}/none", 0), self._constant(f"{output}/least", -np.inf)
        return self._add("Where", [spread, *ends], output)

    def _causal(self, scores: str, output: str) -> str:
        """Append minus infinity for later tokens, and 0 for others."""
        square = self._add("Shape", [scores], f"{output}/square", start=2, end=4)
        least = self._constant(f"{output}/later", -np.inf)
        whole = self._add("Expand", [least, square], f"{output}/hidden")
        one = self._constant(f"{output}/diagonal", 1, np.int64)
        return self._add("Trilu", [whole, one], f"{output}/causal", upper=1)


RULES: dict[str, Callable[[FusedOperators, onnx.NodeProto, dict[str, Any]], None]] = {
    "Attention": FusedOperators.attention,
    "BiasGelu": FusedOperators.gelu,
    "EmbedLayerNormalization": FusedOperators.embedding,
    "FastGelu": FusedOperators.fast_gelu,
    "FusedConv": FusedOperators.activated,
    "FusedGemm": FusedOperators.activated,
    "FusedMatMul": FusedOperators.product,
    "Gelu": FusedOperators.gelu,
    "LayerNormalization": FusedOperators.normalization,
    "MultiHeadAttention": FusedOperators.heads,
    "QuickGelu": FusedOperators.quick_gelu,
    "SimplifiedLayerNormalization": FusedOperators.root_mean_square,
    "SkipLayerNormalization": FusedOperators.skip,
    "SkipSimplifiedLayerNormalization": FusedOperators.skip,
}
"""What replaces each operator: takes from the attributes those that it reads."""


def with_operators_apart(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return an equivalent model in which fused operators are ONNX's own.

    Raises:
        RefusalError: an operator has attributes or operands without such a form, or the model is of an old
            opset and cannot be converted.
    """
    opset = next((each.version for each in model.opset_import if each.domain in ("", "ai.onnx")), 0)
    newer = {"SimplifiedLayerNormalization"} | ({"LayerNormalization"} if opset < 17 else set())
    result = onnx.ModelProto()
    result.CopyFrom(model)
    for node in result.graph.node:
        if node.op_type in newer and node.domain in ("", "ai.onnx"):  # what runtimes read, and ONNX has not
            node.domain = DOMAIN
    if not RULES.keys() & {node.op_type for node in result.graph.node if node.domain == DOMAIN}:
        return model
    if all(each.domain != DOMAIN for each in result.opset_import):
        result.opset_import.append(helper.make_opsetid(DOMAIN, 1))
    if opset < LEAST_OPSET:
        result = converted(result, LEAST_OPSET, "an optimised model")
    rewriter, nodes = FusedOperators(result), list(result.graph.node)
    del result.graph.node[:]
    for node in nodes:
        rewriter.node(node)
    drop_unread(result.graph)
    return result
