"""What streaming keys from a file takes: keys are read ahead of their use, and forgotten for want of room."""

from collections.abc import Sequence

from keywright._core import KeySpec
from keywright.plan.cost.model import CostModel


def least_key_memory(steps: Sequence[Sequence[KeySpec]]) -> int:
    """Fewest bytes of keys that streaming works with: the largest key."""
    return max((spec.bytes for step in steps for spec in step), default=0)


def stream_seconds(steps: Sequence[Sequence[KeySpec]], memory: int, model: CostModel, log_n: int) -> float:
    """Predicted time of reading keys for one run of a program, where each run follows another.

    For want of room the key leaves that is needed furthest in the future (Belady), as `EvaluationKeys.stream`
    does it.

    Args:
        steps: the keys of each step, in order.
        memory: most bytes of keys at a time.
        model: predicts times.
        log_n: base-2 logarithm of the ring degree.
    """
    once = [spec for step in steps for spec in step]
    uses = [*once, *once]
    following = [0] * len(uses)
    seen: dict[KeySpec, int] = {}
    for index in range(len(uses) - 1, -1, -1):
        following[index] = seen.get(uses[index], 2 * len(uses))
        seen[uses[index]] = index
    held: dict[KeySpec, int] = {}
    taken = read = 0
    for index, spec in enumerate(uses):
        if spec not in held:
            read += spec.bytes * (index >= len(once))
            taken += spec.bytes
            while taken > memory and held:
                furthest = max(held, key=lambda key: held[key])
                del held[furthest]
                taken -= furthest.bytes
        held[spec] = following[index]
    return read / (8 << 16) * model.of_degree(log_n).load_limb
