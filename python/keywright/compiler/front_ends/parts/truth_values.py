"""Truth values that clients compute and programs read, as those of a mask: they are encrypted as 0 and 1."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import onnx
from numpy.typing import NDArray

from keywright.compiler.front_ends.operators.gating.gates import HIDDEN

SPREADING = frozenset(
    ["And", "Expand", "Flatten", "Gather", "Identity", "Not", "Reshape", "Squeeze", "Transpose", "Unsqueeze"]
)
"""Operators by which a mask of tokens becomes one of pairs of tokens; programs have them, too."""


def is_mask(node: onnx.NodeProto, constant: Callable[[str], NDArray[Any] | None]) -> bool:
    """Whether a node chooses between large negative numbers, which hide elements from a softmax, and others.

    Args:
        constant: returns the value of a constant by name; None for others.
    """
    branches = [constant(name) for name in node.input[1:]] if node.op_type == "Where" else []
    return any(each is not None and bool((each <= HIDDEN).all()) for each in branches)


def before(
    name: str,
    nodes: Sequence[onnx.NodeProto],
    maker: Mapping[str, int],
    client: Collection[int],
    following: Collection[str],
) -> list[tuple[str, int]]:
    """Return a client's truth values from which only `SPREADING` operators make one, each with the node that
    reads it, from the last on.

    Args:
        maker: of each value.
        client: the client's nodes.
        following: values that depend on the input or on its shape.
    """
    chain = list[tuple[str, int]]()
    while (index := maker.get(name)) is not None and index in client:
        operands = [each for each in nodes[index].input if each in following]
        if nodes[index].op_type not in SPREADING or len(operands) != 1:
            break
        (name,) = operands
        chain.append((name, index))
    return chain


def smallest(chain: Iterable[tuple[str, int]], size: int, values: Mapping[str, NDArray[Any]]) -> set[int]:
    """Return the nodes of a chain that a program computes, so that the client encrypts the smallest value.

    Args:
        size: of the value at the chain's end.
        values: of the chain, by name.
    """
    outcome, passed = set[int](), set[int]()
    for name, index in chain:
        passed.add(index)
        if values[name].dtype != bool:
            break
        if values[name].size < size:
            size = values[name].size
            outcome |= passed
    return outcome
