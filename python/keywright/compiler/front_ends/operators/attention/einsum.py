"""Einsum of one or two operands, of which one may be constant."""

import math
import re
import string
from collections.abc import Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from keywright.compiler.front_ends.operator_context import Constant, EncryptedValue, OperatorContext
from keywright.compiler.graph.convolution import Convolution
from keywright.compiler.graph.sparse import SparseMatrix
from keywright.compiler.limits import MAX_ENTRIES, require_at_most, require_elements
from keywright.program.arrays import Shape, Vector

from .products import Factor, contracted

Number = TypeVar("Number", np.int64, np.float64)
EQUATION = re.compile(r"([a-zA-Z]+)(?:,([a-zA-Z]+))?(?:->([a-zA-Z]*))?")


def einsum(context: OperatorContext) -> EncryptedValue:
    """Add sums of products over axes named by letters, as in "bhid,bhjd->bhij"."""
    operands = [value for value in context.operands if value is not None]
    shapes = [v.array.shape if isinstance(v, Constant) else v.shape for v in operands]
    equation = _spelled_out(context.attribute("equation", "").replace(" ", ""), shapes)
    match = EQUATION.fullmatch(equation)
    if match is None or len(operands) != 1 + (match[2] is not None):
        raise context.refuse(
            "equation", equation, "letters of one or two operands, and -> beside an ellipsis"
        )
    terms = [match[1], match[2]][: len(operands)]
    together = "".join(terms)
    result = match[3]
    if result is None:
        result = "".join(sorted(letter for letter in set(together) if together.count(letter) == 1))
    sizes: dict[str, int] = {}
    text = " and ".join(map(str, shapes))
    for term, shape in zip(terms, shapes, strict=True):
        fits = len(term) == len(shape) == len(set(term))
        if not fits or any(sizes.setdefault(a, size) != size for a, size in zip(term, shape, strict=True)):
            raise context.refuse("equation", f"{equation} for shapes {text}", "an axis for each letter")
    if not set(result) <= set(together) or len(set(result)) < len(result):
        raise context.refuse("equation", equation, "a result of letters of the operands, each once")
    if 0 in sizes.values():
        raise context.refuse("equation", f"{equation} for shapes {text}", "at least one element on each axis")
    shape = tuple(sizes[letter] for letter in result)
    require_elements(f"the result of node {context.name!r}", shape)
    values = [value for value in operands if isinstance(value, EncryptedValue)]
    if len(values) == 2:
        return _of_values(context, values, terms, result, sizes)
    index = next(i for i, value in enumerate(operands) if isinstance(value, EncryptedValue))
    weight, letters = np.ones(()), ""
    if len(operands) == 2:
        other = operands[1 - index]
        assert isinstance(other, Constant)
        weight, letters = np.asarray(other.array, np.float64), terms[1 - index]
    return _with_constant(context, values[0], terms[index], weight, letters, result, shape)


def _spelled_out(equation: str, shapes: Sequence[Shape]) -> str:
    """Return an equation with letters instead of ellipses, which share their last axes."""
    given, arrow, result = equation.partition("->")
    terms, free = given.split(","), [letter for letter in string.ascii_letters if letter not in equation]
    if "..." not in given or not arrow or len(terms) != len(shapes):
        return equation
    pairs = list(zip(terms, shapes, strict=True))
    sizes = [max(0, len(shape) - len(term.replace("...", ""))) for term, shape in pairs]
    most = max(size for term, size in zip(terms, sizes, strict=True) if "..." in term)
    every = "".join(free[:most])
    spelled = (term.replace("...", every[most - size :]) for term, size in zip(terms, sizes, strict=True))
    return f"{','.join(spelled)}->{result.replace('...', every)}"


def _with_constant(
    context: OperatorContext,
    source: EncryptedValue,
    term: str,
    weight: Vector,
    letters: str,
    result: str,
    shape: Shape,
) -> EncryptedValue:
    out = np.arange(math.prod(shape)).reshape(shape)
    rows, inner = ([a for a in term if (a in letters) == shared] for shared in (False, True))
    columns = [a for a in letters if a not in term]
    if rows and inner and columns and sorted(result) == sorted(rows + columns):  # the same at every row
        require_at_most(f"node {context.name!r}", "entries", weight.size, MAX_ENTRIES)
        matrix = _matrix(weight, letters, (columns, inner))
        elements = _matrix(out, result, (columns, rows)), _matrix(source.indices(), term, (inner, rows))
        return context.linear(source, shape, Convolution.everywhere(matrix, *elements))
    every = term + "".join(letter for letter in letters if letter not in term)
    sizes = dict(zip(term, source.shape, strict=True)) | dict(zip(letters, weight.shape, strict=True))
    joint = [sizes[letter] for letter in every]
    require_at_most(f"node {context.name!r}", "entries", math.prod(joint), MAX_ENTRIES)
    into = np.broadcast_to(_aligned(out, result, every), joint).ravel()
    origin = np.broadcast_to(_aligned(source.indices(), term, every), joint).ravel()
    factors = np.broadcast_to(_aligned(weight, letters, every), joint).ravel()
    entries = SparseMatrix.from_entries((out.size, source.size), into, origin, factors)
    return context.linear(source, shape or (1,), entries)


def _matrix(array: NDArray[Number], names: str, groups: tuple[list[str], list[str]]) -> NDArray[Number]:
    """Return an array as a matrix, whose two axes are groups of axes."""
    moved = array.transpose([names.index(a) for group in groups for a in group])
    return moved.reshape([math.prod(array.shape[names.index(a)] for a in group) for group in groups])


def _of_values(
    context: OperatorContext,
    values: list[EncryptedValue],
    terms: list[str],
    result: str,
    sizes: dict[str, int],
) -> EncryptedValue:
    first, second = terms
    alone = [a for a in first + second if a not in result and (a in first) != (a in second)]
    if alone:
        raise context.refuse(
            "equation",
            f"{first},{second}->{result}",
            f"{', '.join(sorted(alone))} in the result, with a ReduceSum behind it",
        )
    stack = [a for a in first if a in second and a in result]
    inner = [a for a in first if a in second and a not in result]
    rows = [a for a in first if a not in second]
    columns = [a for a in second if a not in first]
    left = _matrices(values[0], first, (stack, rows, inner))
    right = _matrices(values[1], second, (stack, inner, columns))
    product = contracted(context, left, right)
    names = "".join([*stack, *rows, *columns])
    order = product.indices().reshape([sizes[a] for a in names] or [1])
    if names:
        order = order.transpose([names.index(a) for a in result])
    return EncryptedValue(product.number, order.shape, order)


def _matrices(value: EncryptedValue, term: str, groups: tuple[list[str], list[str], list[str]]) -> Factor:
    """Return a value as a stack of matrices whose axes are groups of axes."""
    moved = value.indices().transpose([term.index(a) for group in groups for a in group])
    sizes = dict(zip(term, value.shape, strict=True))
    return Factor(value, moved.reshape([math.prod(sizes[a] for a in group) for group in groups]))


def _aligned(array: NDArray[Number], names: str, every: str) -> NDArray[Number]:
    """Return an array with an axis for each letter of ``every``, of size 1 for those that it lacks."""
    present = [letter for letter in every if letter in names]
    moved = array.transpose([names.index(letter) for letter in present])
    return moved.reshape([moved.shape[present.index(a)] if a in names else 1 for a in every])
