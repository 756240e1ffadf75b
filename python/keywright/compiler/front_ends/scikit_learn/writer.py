"""Writes ONNX models of one sample's table: nodes, constants, and columns of values."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import onnx
from numpy.typing import ArrayLike
from onnx import TensorProto, helper, numpy_helper

from keywright.compiler.front_ends.model_file import CLIENT, COLUMNS
from keywright.program.client.first_steps import NUMBERS, TEXT
from keywright.program.client.samples import MISSING, Column, ColumnKind

OPSET, CLASSICAL_OPSET = 18, 3

UNREAD = ""
"""Stands for the value of columns that nothing reads."""


@dataclass(frozen=True)
class Feature:
    """A column of a table inside a model.

    Attributes:
        value: the matrix that it is a column of, (1, columns).
        index: its number there.
        kind: of its values.
        raw: the number of the sample's column that it is, unchanged; None for others.
        missing: what a missing text stands for.
    """

    value: str
    index: int
    kind: ColumnKind = "numbers"
    raw: int | None = None
    missing: str | None = None


Table = Sequence[Feature]


class Writer:
    """Collects nodes and constants.

    Args:
        columns: of the samples.
        named: whether samples may be tables of these columns; otherwise they are arrays of numbers.
    """

    def __init__(self, columns: Sequence[Column], *, named: bool = True) -> None:
        self.columns, self.named = list(columns), named
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self.client: list[str] = []
        self._count = 0
        self._widths = {
            NUMBERS: sum(column.kind == "numbers" for column in columns),
            TEXT: sum(column.kind == "text" for column in columns),
        }

    def table(self) -> list[Feature]:
        """Return the sample's columns."""
        result, at = list[Feature](), {NUMBERS: 0, TEXT: 0, UNREAD: 0}
        values = {"numbers": NUMBERS, "text": TEXT}
        for number, column in enumerate(self.columns):
            value = values.get(column.kind, UNREAD)
            result.append(Feature(value, at[value], column.kind, number))
            at[value] += 1
        return result

    def constant(self, array: ArrayLike, kind: Any = np.float64) -> str:
        """Add a constant and return its name."""
        name = self._name("constant")
        self.constants.append(numpy_helper.from_array(np.asarray(array, kind), name))
        return name

    def add(self, operator: str, *inputs: str, domain: str = "", **attributes: Any) -> str:
        """Add a node with one output and return that."""
        name = self._name(operator)
        node = helper.make_node(operator, list(inputs), [name], name, domain=domain, **attributes)
        self.nodes.append(node)
        return name

    def on_client(self, value: str) -> str:
        """Say that the client computes a value, whatever its operators."""
        self.client.append(value)
        return value

    def matrix(self, table: Table) -> str:
        """Return columns of numbers as a matrix, (1, columns)."""
        parts: list[tuple[str, list[int]]] = []
        for feature in table:
            if not parts or parts[-1][0] != feature.value:
                parts.append((feature.value, []))
            parts[-1][1].append(feature.index)
        names = []
        for value, chosen in parts:
            if chosen == list(range(len(chosen))) and self._width(value) == len(chosen):
                names.append(value)
            else:
                names.append(self.add("Gather", value, self.constant(chosen, np.int64), axis=1))
        joined = names[0] if len(names) == 1 else self.add("Concat", *names, axis=1)
        self._widths[joined] = len(table)
        return joined

    def columns_of(self, value: str, width: int) -> list[Feature]:
        """Return the columns of a matrix of numbers."""
        self._widths[value] = width
        return [Feature(value, index) for index in range(width)]

    def cast(self, value: str, kind: int = TensorProto.DOUBLE) -> str:
        """Return a value in another type."""
        return self.add("Cast", value, to=kind)

    def require_known(self, feature: Feature, categories: Sequence[Any]) -> None:
        """Let clients refuse values of a sample's column that are no category."""
        if feature.raw is None:
            return
        text = feature.kind == "text"
        known = [MISSING if text and (each is None or each != each) else each for each in categories]
        if feature.missing in known:
            known.append(MISSING)
        stored = tuple(each if isinstance(each, str) else float(each) for each in known)
        self.columns[feature.raw] = replace(self.columns[feature.raw], categories=stored)

    def model(
        self, outputs: Sequence[tuple[str, str]], extra: Sequence[onnx.OperatorSetIdProto] = ()
    ) -> onnx.ModelProto:
        """Return the model, without nodes that no output follows from.

        Args:
            outputs: values and their names as outputs.
            extra: further operator sets.
        """
        for value, name in outputs:
            self.nodes.append(helper.make_node("Identity", [value], [name], f"output {name}"))
        read, nodes = {name for _, name in outputs}, list[onnx.NodeProto]()
        for node in reversed(self.nodes):  # selections and the like leave columns that nothing reads
            if read.intersection(node.output):
                read.update(node.input)
                nodes.insert(0, node)
        kinds = {NUMBERS: ("numbers", TensorProto.DOUBLE), TEXT: ("text", TensorProto.STRING)}
        inputs = [
            helper.make_tensor_value_info(name, kind, ["batch", count])
            for name, (of, kind) in kinds.items()
            if (count := sum(column.kind == of for column in self.columns))
        ]
        body = helper.make_graph(
            nodes,
            "pipeline",
            inputs,
            [onnx.ValueInfoProto(name=name) for _, name in outputs],
            [tensor for tensor in self.constants if tensor.name in read],
        )
        opsets = {"": OPSET, "ai.onnx.ml": CLASSICAL_OPSET}
        for each in extra:
            opsets[each.domain] = max(each.version, opsets.get(each.domain, 1))
        model = helper.make_model(
            body, opset_imports=[helper.make_opsetid(*each) for each in opsets.items()], ir_version=9
        )
        for mine, inferred in zip(
            model.graph.output, onnx.shape_inference.infer_shapes(model).graph.output, strict=True
        ):
            mine.CopyFrom(inferred)
            if not mine.type.tensor_type.HasField("shape"):
                kind = mine.type.tensor_type.elem_type or TensorProto.DOUBLE
                mine.CopyFrom(helper.make_tensor_value_info(mine.name, kind, ["batch"]))
        stored = [
            [each.name, each.kind, each.categories and [k if k == k else None for k in each.categories]]
            for each in self.columns
        ]
        named = {COLUMNS: json.dumps(stored)} if self.named else {}
        helper.set_model_props(model, named | {CLIENT: json.dumps(self.client)})
        return model

    def _width(self, value: str) -> int:
        return self._widths.get(value, -1)

    def _name(self, what: str) -> str:
        self._count += 1
        return f"{what}_{self._count}"
