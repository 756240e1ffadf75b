"""The cost of streaming keys from a file: keys are read ahead of their use and evicted when memory is
full."""

from collections.abc import Sequence

from keywright._core import KeySpec
from keywright.plan.cost.model import CostModel


def least_key_memory(steps: Sequence[Sequence[KeySpec]]) -> int:
    """Return the fewest bytes of keys with which streaming works: the largest key."""
    return max((spec.bytes for step in steps for spec in step), default=0)


def stream_seconds(steps: Sequence[Sequence[KeySpec]], memory: int, model: CostModel, log_n: int) -> float:
    """Predict the time of reading keys for one run of a program that runs repeatedly.

    When memory is full, the idle key needed furthest in the future is evicted (Belady), as
    `EvaluationKeys.stream` does.

    Args:
        steps: the keys of each step, in order.
        memory: maximum bytes of keys in memory.
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
