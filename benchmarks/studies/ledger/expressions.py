"""Expressions of figures, as claims and pages have them between braces.

`{1e3 * median(modes("mode: plain; numbers: 65536")["encrypt_s"]):.1f}`: the record `modes` of `records/`,
its rows with these columns, one of their columns, and how the number is written.
`{max(thin.plain["encrypt_s"]):.1f}` takes rows that `records/` has a name for. Of several rows a column
is a list. A record with a pattern alone, `{output("([0-9]+) keys"):d}`, is the number of the pattern's group.
The format `2r` keeps two digits of a whole number: 6,500.
"""

from __future__ import annotations

import ast
import operator
import re
import statistics
from collections.abc import Callable, Mapping
from typing import Any

from studies.ledger.records import NoFigure, Record, value_of

BRACES = re.compile(r"\{(?P<expression>[^{}]+?):(?P<format>[ ,.\d]*[fdr%g])\}")
OPERATORS: Mapping[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}
FUNCTIONS: Mapping[str, Callable[[Any], float]] = {
    "median": statistics.median,
    "mean": statistics.mean,
    "min": min,
    "max": max,
    "sum": sum,
    "count": len,
}


class Expressions:
    """Evaluates expressions over records, and notes which were used.

    Attributes:
        used: names of the records of the last text, in the order of their first use.
    """

    def __init__(self, records: Mapping[str, Record]) -> None:
        self._records = records
        self.used: list[str] = []

    def fill(self, text: str) -> str:
        """A text with its expressions replaced by figures.

        Raises:
            NoFigure: a record does not have one.
            SyntaxError: what is between braces is not an expression.
        """
        self.used = []

        def figure(number: re.Match[str]) -> str:
            value = self._number(self._value(ast.parse(number["expression"].strip(), mode="eval").body))
            return _written(value, number["format"].strip())

        return BRACES.sub(figure, text)

    @staticmethod
    def without(text: str) -> str:
        """A text without its expressions."""
        return BRACES.sub("", text)

    def _number(self, value: Any) -> float:
        if isinstance(value, list) and len(value) == 1:
            value = value[0]
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise NoFigure(f"not one number: {value!r}")
        return value

    def _value(self, node: ast.expr) -> Any:
        match node:
            case ast.Constant(value=str() | int() | float() as value):
                return value
            case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATORS:
                return OPERATORS[type(op)](self._number(self._value(left)), self._number(self._value(right)))
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return -self._number(self._value(operand))
            case ast.Call(func=ast.Name(id=name), args=[argument], keywords=[]) if name in FUNCTIONS:
                values = self._value(argument)
                return FUNCTIONS[name](values if isinstance(values, list) else [values])
            case ast.List(elts=parts):
                return [self._number(self._value(part)) for part in parts]
            case ast.Call(func=ast.Name(id=name), args=[ast.Constant(value=str(pattern))], keywords=[]):
                return self._record(name).match(pattern)
            case ast.Subscript(value=ast.Call(func=ast.Name(id=name), args=[where]), slice=column):
                return self._column(name, self._value(where), self._value(column))
            case ast.Subscript(value=ast.Attribute(value=ast.Name(id=name), attr=row), slice=column):
                if row not in (named := self._record(name).rows):
                    raise NoFigure(f"{name} names no rows {row!r}; there are {', '.join(named)}")
                return self._column(name, named[row], self._value(column))
            case _:
                raise NoFigure(f"not an expression of figures: {ast.unparse(node)}")

    def _column(self, name: str, where: str, column: str) -> Any:
        numbers: list[float] = []
        for value in (value_of(line, column) for line in self._record(name).select(where)):
            numbers += value if isinstance(value, list) else [value]
        return numbers[0] if len(numbers) == 1 else numbers

    def _record(self, name: str) -> Record:
        if name not in self._records:
            raise NoFigure(f"there is no record {name!r}; there are {', '.join(self._records)}")
        if name not in self.used:
            self.used.append(name)
        return self._records[name]


def _written(value: float, how: str) -> str:
    if how.endswith("r"):
        return f"{float(f'{value:.{how[:-1]}g}'):,.0f}"
    return format(int(value) if how.endswith("d") else value, how)
