"""Products of two encrypted tensors, summed over common axes: MatMul, Gemm, Einsum and attention.

The joint elements ``left[b, m, k] right[b, k, n]`` are one elementwise product, and linear maps spread both
factors over them and sum them over k. The cost of these maps depends on the order of the joint elements. Rows
m come last, as the tokens of a sentence do. One of the other axes comes first, on a diagonal if it is as long
as the rows: place d holds ``(m + d) mod M``, as in the matrix products of Jiang, Kim, Lauter and Song (CCS
2018). One factor is then repeated, the other is rotated by d inside its rows, and the maps take few
diagonals. A result keeps this order, in which `softmax` and the next product read it.
"""

from dataclasses import dataclass, replace

import numpy as np

from keywright.compiler.front_ends.operator_context import EncryptedValue, OperatorContext, picking
from keywright.compiler.graph.graph import Linear
from keywright.compiler.graph.sparse import Indices, SparseMatrix
from keywright.compiler.limits import MAX_ELEMENTS, require_at_most
from keywright.program.arrays import Shape

SHORTER = "compile for shorter sequences, or for windows of them"
"""Advice for models whose products or softmaxes have too many elements."""

SMALL = 1 << 11
"""Joint elements up to which maps are merged: they take levels rather than few diagonals to heart."""


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
    if (turn := _turn(left)) is not None:
        return _from_diagonals(context, left, right, turn)
    if (turn := _turn(right.transposed)) is not None:
        result = _from_diagonals(context, right.transposed, left.transposed, turn)
        return _swapped(result)
    return _to_diagonals(context, left, right)


def _swapped(result: EncryptedValue) -> EncryptedValue:
    order = result.indices().transpose(0, 2, 1)
    return EncryptedValue(result.number, order.shape, order)


def _turn(factor: Factor) -> int | None:
    """Return 1 if a stack of matrices is stored by diagonals, 0 if by columns with the stack inside, as
    results of `_to_diagonals` are; None otherwise."""
    if factor.value.order is None:
        return None
    stack, rows, columns = factor.numbers.shape
    for turn in (1, 0):
        if (turn == 0 or rows == columns) and np.array_equal(
            factor.numbers, _diagonal_order(stack, rows, columns, turn)
        ):
            return turn
    return None


def _diagonal_order(stack: int, rows: int, columns: int, turn: int) -> Indices:
    """Return the number of each element of a stack of matrices that is stored by diagonals."""
    b, m, n = np.indices((stack, rows, columns))
    return np.asarray(((n - turn * m) % columns) * (stack * rows) + b * rows + m, np.int64)


def _to_diagonals(context: OperatorContext, left: Factor, right: Factor) -> EncryptedValue:
    """Return products of matrices stored in any way: their results are stored by diagonals."""
    (stack, rows, inner), columns = left.numbers.shape, right.numbers.shape[2]
    turn = int(rows == columns > 1)
    joint = (columns, stack, inner, rows)
    d, b, k, m = np.indices(joint)
    large = d.size > SMALL
    first = _stored(context, left.transposed, large)
    second = _stored(context, right, large)
    a = _gathered(context, first, (b * inner + k) * rows + m)
    c = _gathered(context, second, (b * inner + k) * columns + (m * turn + d) % columns)
    product = context.product(a, c)
    sums = (d * stack + b) * rows + m
    if large:
        heads = ((d * stack + b) * inner) * rows + m
        product = _summed(context, product, heads, joint)
        return _viewed(
            _picked(context, product, heads[:, :, 0], (columns, stack, rows)),
            _diagonal_order(stack, rows, columns, turn),
        )
    result = _summed(context, product, sums, (columns, stack, rows))
    return _viewed(result, _diagonal_order(stack, rows, columns, turn))


def _from_diagonals(context: OperatorContext, left: Factor, right: Factor, turn: int) -> EncryptedValue:
    """Return products whose left matrices are stored by diagonals; results have rows last."""
    (stack, rows, inner), columns = left.numbers.shape, right.numbers.shape[2]
    joint = (inner, stack, columns, rows)
    d, b, n, m = np.indices(joint)
    large = d.size > SMALL
    second = _stored(context, right.transposed, large)
    c = _gathered(context, second, (b * columns + n) * inner + (m * turn + d) % inner)
    first = replace(left.value, shape=(inner, stack, rows), order=None)
    own = (d * stack + b) * rows + m
    if large:
        first = _gathered(context, first, np.where(n == 0, own, -1), separate=True)
        own = ((d * stack + b) * columns) * rows + m
    a = _gathered(context, first, own)
    product = context.product(a, c)
    result = _summed(context, product, (b * columns + n) * rows + m, (stack, columns, rows), separate=large)
    b, m, n = np.indices((stack, rows, columns))
    return _viewed(result, np.asarray((b * columns + n) * rows + m, np.int64))


def _viewed(value: EncryptedValue, order: Indices) -> EncryptedValue:
    return EncryptedValue(value.number, order.shape, order)


def _stored(context: OperatorContext, factor: Factor, separate: bool) -> EncryptedValue:
    """Return a stack of matrices as a value that is stored in their order. A map that reorders is part of the
    map that made the value."""
    source, numbers = _origin(context, factor.value.number), factor.numbers
    number, chosen = source
    base = EncryptedValue(number, (len(chosen),))
    numbers = chosen[numbers]
    shape = numbers.shape
    return context.linear(base, shape, picking(base, numbers), laid_out=(numbers.size,), separate=separate)


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


def _picked(
    context: OperatorContext, source: EncryptedValue, chosen: Indices, shape: Shape
) -> EncryptedValue:
    return context.linear(source, shape, picking(source, chosen), laid_out=(chosen.size,), separate=True)


def _summed(
    context: OperatorContext, source: EncryptedValue, into: Indices, shape: Shape, *, separate: bool = True
) -> EncryptedValue:
    """Return the sums of the elements that have the same number in ``into``."""
    size = int(np.prod(shape, dtype=np.int64))
    origin = np.arange(into.size)
    matrix = SparseMatrix.from_distinct((size, source.size), into.ravel(), origin, np.ones(into.size))
    return context.linear(source, shape, matrix, laid_out=(size,), separate=separate)


def _mismatch(context: OperatorContext, left: EncryptedValue, right: EncryptedValue) -> Exception:
    return context.refuse("shapes of operands", f"{left.shape} and {right.shape}", "shapes that fit")
