"""Products of two encrypted tensors, summed over common axes: MatMul, Gemm, Einsum and attention.

The joint elements ``left[b, m, k] right[b, k, n]`` are one elementwise product, and linear maps spread both
factors over them and sum them over k. The cost of these maps depends on the order of the joint elements. Rows
m come last, as the tokens of a sentence do. One of the other axes comes first, on a diagonal if it is as long
as the rows: place d holds ``(m + d) mod M``, as in the matrix products of Jiang, Kim, Lauter and Song (CCS
2018). One factor is then repeated, the other is rotated by d inside its rows, and the maps take few
diagonals. A result keeps this order, in which `softmax` and the next product read it.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from keywright.compiler.front_ends.operator_context import EncryptedValue, OperatorContext, picking
from keywright.compiler.graph.graph import Linear
from keywright.compiler.graph.sparse import Indices, SparseMatrix
from keywright.compiler.limits import MAX_ELEMENTS, require_at_most
from keywright.program.arrays import Shape

SHORTER = "compile for shorter sequences, or for windows of them"
"""Advice for models whose products or softmaxes have too many elements."""


@dataclass(frozen=True, eq=False)
class Factor:
    """A factor as a stack of matrices.

    Attributes:
        value: the encrypted value.
        numbers: of its elements, (stack, rows, columns).
    """

    value: EncryptedValue
    numbers: Indices

    @property
    def transposed(self) -> "Factor":
        """The stack of transposed matrices."""
        return Factor(self.value, self.numbers.transpose(0, 2, 1))


def matrix_product(context: OperatorContext, left: EncryptedValue, right: EncryptedValue) -> EncryptedValue:
    """Add the product of two encrypted tensors, as MatMul defines it for any rank."""
    first, second = left.indices(), right.indices()
    first = first[None] if first.ndim == 1 else first
    second = second[:, None] if second.ndim == 1 else second
    try:
        stacks = np.broadcast_shapes(first.shape[:-2], second.shape[:-2])
    except ValueError as error:
        raise _mismatch(context, left, right) from error
    if first.shape[-1] != second.shape[-2]:
        raise _mismatch(context, left, right)
    result = contracted(
        context,
        Factor(left, np.broadcast_to(first, (*stacks, *first.shape[-2:])).reshape(-1, *first.shape[-2:])),
        Factor(right, np.broadcast_to(second, (*stacks, *second.shape[-2:])).reshape(-1, *second.shape[-2:])),
    )
    shape = list(stacks)
    shape += [first.shape[-2]] if len(left.shape) > 1 else []
    shape += [second.shape[-1]] if len(right.shape) > 1 else []
    return result.reshaped(tuple(shape) or (1,))


def contracted(context: OperatorContext, left: Factor, right: Factor) -> EncryptedValue:
    """Return the products of two stacks of matrices, (stack, rows, columns)."""
    (stack, rows, inner), columns = left.numbers.shape, right.numbers.shape[2]
    products = stack * rows * inner * columns
    require_at_most(f"node {context.name!r}", "products", products, MAX_ELEMENTS, SHORTER)
    if (stored := _stored_diagonals(left)) is not None:
        return _from_diagonals(context, left, right, *stored)
    if (stored := _stored_diagonals(right.transposed)) is not None:
        result = _from_diagonals(context, right.transposed, left.transposed, *stored)
        return _swapped(result)
    return _to_diagonals(context, left, right)


def _swapped(result: EncryptedValue) -> EncryptedValue:
    order = result.indices().transpose(0, 2, 1)
    return EncryptedValue(result.number, order.shape, order)


def _stored_diagonals(factor: Factor) -> tuple[int, Indices] | None:
    """Return how a stack of matrices is stored, if it is a result of `_to_diagonals`: 1 by diagonals, 0 by
    columns; and the place of each diagonal or column of each matrix, (columns, stack)."""
    stack, rows, columns = factor.numbers.shape
    if factor.value.order is None or factor.value.size != factor.numbers.size:
        return None
    places = factor.numbers[:, 0].T // rows
    pairs = ((part, second) for part in _divisors(columns) for second in _divisors(columns // part))
    if not any(np.array_equal(places, _places(columns, stack, *pair)) for pair in pairs):
        return None
    for turn in (1, 0):
        if (turn == 0 or rows == columns) and np.array_equal(
            factor.numbers, _diagonal_order(places, rows, turn)
        ):
            return turn, places
    return None


def _diagonal_order(places: Indices, rows: int, turn: int) -> Indices:
    """Return the number of each element of a stack of matrices that is stored by diagonals at these places,
    (columns, stack)."""
    columns, stack = places.shape
    b, m, n = np.indices((stack, rows, columns))
    return np.asarray(places[(n - turn * m) % columns, b] * rows + m, np.int64)


def _divisors(number: int) -> list[int]:
    return [size for size in range(1, number + 1) if number % size == 0]


def _places(diagonals: int, stack: int, part: int, second: int) -> Indices:
    """Return the place of each diagonal of each matrix behind two steps of `_sums_of`, (diagonals, stack)."""
    d, b = np.indices((diagonals, stack))
    first, others = np.divmod(d, diagonals // part)
    middle, last = np.divmod(others, diagonals // part // second)
    return np.asarray(((last * stack + b) * second + middle) * part + first, np.int64)


def _sums_of(diagonals: int, stack: int, terms: int) -> tuple[Indices, Indices]:
    """Return how the terms of every diagonal of every matrix are summed in two steps: the place of each joint
    element's sum behind the first step, (diagonals, stack, terms), and `_places` of the second.

    The first step sums every ``part`` neighbouring terms. Each sum is left at the first of their places, and
    the next places take the sums of diagonals that are whole ciphertexts away. All thus move by less than
    ``part`` places, and fewer ciphertexts are left. The second step does the same to the remaining terms. If
    ``part`` is 1, as for an odd number of diagonals, the first step sums all terms and moves nothing.
    """
    d, b, k = np.indices((diagonals, stack, terms))
    part = max(size for size in _divisors(math.gcd(diagonals, terms)) if size**3 <= 2 * terms)
    if part == 1:
        return (d * stack + b) * terms, _places(diagonals, stack, 1, 1)
    first, others = np.divmod(d, diagonals // part)
    second = max(size for size in _divisors(diagonals // part) if size * part <= terms)
    halfway = ((others * stack + b) * (terms // part) + k // part) * part + first
    return halfway, _places(diagonals, stack, part, second)


def _rows_behind(halfway: Indices, places: Indices, rows: int) -> Indices:
    """Return the number of the element at one of the places, (diagonals, stack), with which each element
    halfway has terms in common, (elements halfway, rows); -1 for those without terms."""
    numbers = np.full(int(halfway.max()) + 1, -1)
    numbers[halfway] = places[:, :, None]
    return np.where(numbers < 0, -1, numbers * rows + np.arange(rows)[:, None]).T


def _to_diagonals(context: OperatorContext, left: Factor, right: Factor) -> EncryptedValue:
    """Return products of matrices stored in any way: their results are stored by diagonals."""
    (stack, rows, inner), columns = left.numbers.shape, right.numbers.shape[2]
    turn = int(rows == columns > 1)
    joint = (columns, stack, inner, rows)
    d, b, k, m = np.indices(joint)
    first, second = _stored(context, left.transposed), _stored(context, right)
    a = _gathered(context, first, (b * inner + k) * rows + m)
    c = _gathered(context, second, (b * inner + k) * columns + (m * turn + d) % columns)
    halfway, places = _sums_of(columns, stack, inner)
    into, shape = halfway[..., None] * rows + m, (int(halfway.max()) + 1, rows)
    partial = _summed(context, context.product(a, c), into, shape)
    result = _summed(context, partial, _rows_behind(halfway, places, rows), (columns, stack, rows))
    return _viewed(result, _diagonal_order(places, rows, turn))


def _from_diagonals(
    context: OperatorContext, left: Factor, right: Factor, turn: int, places: Indices
) -> EncryptedValue:
    """Return products whose left matrices are stored by diagonals at these places; results have rows last."""
    (stack, rows, inner), columns = left.numbers.shape, right.numbers.shape[2]
    joint = (inner, stack, columns, rows)
    d, b, n, m = np.indices(joint)
    second = _stored(context, right.transposed)
    c = _gathered(context, second, (b * columns + n) * inner + (m * turn + d) % inner)
    halfway, _ = _sums_of(inner, stack, columns)
    first = replace(left.value, shape=(inner, stack, rows), order=None)
    first = _gathered(context, first, _rows_behind(halfway, places, rows), separate=True)
    a = _gathered(context, first, halfway[..., None] * rows + m)
    product = context.product(a, c)
    result = _summed(context, product, (b * columns + n) * rows + m, (stack, columns, rows))
    b, m, n = np.indices((stack, rows, columns))
    return _viewed(result, np.asarray((b * columns + n) * rows + m, np.int64))


def _viewed(value: EncryptedValue, order: Indices) -> EncryptedValue:
    return EncryptedValue(value.number, order.shape, order)


def _stored(context: OperatorContext, factor: Factor) -> EncryptedValue:
    """Return a stack of matrices as a value that is stored in their order. A map that reorders is part of the
    map that made the value."""
    source, numbers = _origin(context, factor.value.number), factor.numbers
    number, chosen = source
    base = EncryptedValue(number, (len(chosen),))
    numbers = chosen[numbers]
    shape = numbers.shape
    return context.linear(base, shape, picking(base, numbers), laid_out=(numbers.size,), separate=True)


def _origin(context: OperatorContext, number: int) -> tuple[int, Indices]:
    """Return the value whose elements a value reorders, and the number of each there."""
    node = context.graph.nodes[number]
    size = int(np.prod(node.shape, dtype=np.int64))
    chosen = np.arange(size)
    while isinstance(node, Linear) and len(node.operands) == 1 and not node.bias.any():
        matrix = node.matrices[0]
        if not isinstance(matrix, SparseMatrix) or matrix.shape[0] != matrix.shape[1]:
            break
        if len(matrix.values) != matrix.shape[0] or (matrix.values != 1).any():
            break
        columns = np.full(matrix.shape[0], -1)
        columns[matrix.rows] = matrix.columns
        if (columns < 0).any():
            break
        chosen, number = columns[chosen], node.operands[0]
        node = context.graph.nodes[number]
    return number, chosen


def _gathered(
    context: OperatorContext, source: EncryptedValue, chosen: Indices, *, separate: bool = False
) -> EncryptedValue:
    """Return the elements with these numbers, none for -1, stored in the order of ``chosen``."""
    return context.linear(
        source, chosen.shape, picking(source, chosen), laid_out=(chosen.size,), separate=separate
    )


def _summed(context: OperatorContext, source: EncryptedValue, into: Indices, shape: Shape) -> EncryptedValue:
    """Return the sums of the elements that have the same number in ``into``; those with -1 are left out."""
    size = int(np.prod(shape, dtype=np.int64))
    origin = np.flatnonzero(into.ravel() >= 0)
    matrix = SparseMatrix.from_distinct(
        (size, source.size), into.ravel()[origin], origin, np.ones(origin.size)
    )
    return context.linear(source, shape, matrix, laid_out=(size,), separate=True)


def _mismatch(context: OperatorContext, left: EncryptedValue, right: EncryptedValue) -> Exception:
    return context.refuse("shapes of operands", f"{left.shape} and {right.shape}", "shapes that fit")
