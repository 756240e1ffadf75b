"""Refusals of operators, attributes and shapes of a model."""

from collections.abc import Sequence

from keywright.errors.network import RefusalError

SHOWN = 80
"""Characters of a value that a message shows."""


def unsupported_operator(node: str, operator: str, advice: str) -> RefusalError:
    """Return the refusal of an ONNX operator without an encrypted form, with advice for it."""
    return RefusalError(
        f"node {node!r}: operator {operator} is not supported; "
        f"{advice or 'replace it by operators that have an encrypted form'}",
        code="operator",
        node=node,
        operator=operator,
    )


def unsupported_attribute(
    node: str, operator: str, attribute: str, value: object, allowed: str
) -> RefusalError:
    """Return the refusal of an attribute or operand that has no encrypted form. Without a node, it is of an
    object of a library."""
    where, shown = f"node {node!r}: {operator}" if node else operator, str(value)
    shown = shown if len(shown) <= SHOWN else f"{shown[:SHOWN]}..."
    return RefusalError(
        f"{where} with {attribute} = {shown} is not supported; it needs {allowed}",
        code="attribute",
        node=node,
        operator=operator,
        attribute=attribute,
    )


def no_batch_axis(name: str, shape: Sequence[int], *, calibrated: bool) -> RefusalError:
    """Return the refusal of an input whose first axis is no batch.

    Args:
        calibrated: whether the samples of calibration data have the input's own shape, which shows it.
            Otherwise the model can use the input in no other way.
    """
    shown = ", ".join(map(str, shape))
    why = f"the calibration data have samples of shape ({shown})" if calibrated else "no sample would be left"
    return RefusalError(
        f"input {name!r} has shape ({shown}), whose first axis would be the batch, but {why}; export "
        f"the model with a batch axis, for inputs of shape (batch, {shown})",
        code="dynamic_shape",
        name=name,
    )


def dynamic_shape(name: str, shape: Sequence[object]) -> RefusalError:
    """Return the refusal of a dimension other than the batch that is not a number."""
    return RefusalError(
        f"value {name!r} has shape ({', '.join(map(str, shape))}); give calibration data "
        "of as many axes (calibration=), from which open dimensions are taken, or fix every dimension but "
        "the first when exporting the model",
        code="dynamic_shape",
        name=name,
    )


def mask_without_effect(node: str, constant: float, gap: float) -> RefusalError:
    """Return the refusal of a finite mask that leaves elements a share of their row.

    Args:
        constant: the lowest of the mask.
        gap: by how much the largest element of a row exceeds a hidden one, on the calibration data.
    """
    return RefusalError(
        f"node {node!r}: Softmax reads the constant {constant:g} as a mask, and on the calibration data an "
        f"element that it hides is {gap:.4g} below the largest of its row, where 36 are needed; export the "
        "model with minus infinity in its mask",
        code="mask",
        node=node,
    )


def too_far_apart(node: str, farthest: float) -> RefusalError:
    """Return the refusal of a softmax whose operand no polynomial of the exponential takes.

    Args:
        farthest: distance of an element from the mean of its row, on the calibration data.
    """
    return RefusalError(
        f"node {node!r}: an element of the operand of Softmax is {farthest:.4g} above the mean of its row on "
        "the calibration data, which no polynomial of the exponential takes; if the input has a mask of "
        "large negative numbers, give it as 1 for tokens and 0 for padding, from which the model makes them",
        code="mask",
        node=node,
    )


def mask_of_clients(least: float) -> RefusalError:
    """Return the refusal of a model whose mask no program can read, so that a client would encrypt it."""
    return RefusalError(
        f"the client's first steps give {least:.3g}, as masks do, which cannot be encrypted; write the mask "
        "as a choice between 0 and minus infinity (Where) that is added to the operand of a softmax",
        code="client",
    )
