"""Embeddings that clients compute: sums of rows that were looked up by ids, and their normalisation."""

from collections.abc import Callable, Collection, Sequence

import onnx

LOOK_UPS = frozenset(["Gather", "GatherElements", "GatherND"])
SUMS = frozenset(["Add", "Sum"])


def embedding_nodes(
    nodes: Sequence[onnx.NodeProto],
    client: Collection[int],
    data: Collection[str],
    readers: Callable[[str], int],
) -> set[int]:
    """Return the nodes that add up what a client looked up, and normalise it.

    A sum of rows alone holds nothing that the client has not. Constants, such as positions, are added by the
    client only where a LayerNormalization of the sum follows, and nothing else reads it.

    Args:
        client: the client's nodes, of which the look-ups are some.
        data: values that depend on samples.
        readers: returns how often a value is read.
    """
    sums = dict[str, set[int]]()
    """Values that follow from look-ups alone, with the nodes that add to them."""
    outcome, constant = set[int](), set[str]()
    for index, node in enumerate(nodes):
        operands = [name for name in node.input if name in data]
        name = node.output[0]
        if index in client and node.op_type in LOOK_UPS and node.input[0] not in data:
            sums[name] = set()
        elif operands and all(each in sums for each in operands):
            before = set[int]().union(*(sums[each] for each in operands), {index})
            if node.op_type == "LayerNormalization" and readers(operands[0]) == 1:
                outcome |= before
            elif node.op_type in SUMS:
                sums[name] = before
                if len(operands) < len(node.input) or constant.intersection(operands):
                    constant.add(name)
                else:
                    outcome |= before
    return outcome
