"""Memory of a program's live ciphertexts."""

from collections import Counter

from keywright.plan.ring.chain import Chain
from keywright.program.program import Program


def ciphertext_bytes(log_n: int, level: int) -> int:
    """Return the bytes of a ciphertext of degree 1."""
    return (2 * 8 << log_n) * (level + 1)


def live_bytes(network: Program, chain: Chain) -> list[int]:
    """Return the bytes of all ciphertexts at the end of each instruction, before unused ones are released.

    Inputs stay as long as the program runs. A ciphertext that is dropped to a lower level keeps the original,
    whose levels sums can use.

    Args:
        network: the network.
        chain: the primes.
    """
    steps = network.instructions
    last_use = {operand: index for index, step in enumerate(steps) for operand in step.operands}
    rings = network.rings
    size = {step.result: ciphertext_bytes(rings[step.result] or chain.log_n, step.level) for step in steps}
    held: dict[int, tuple[int, ...]] = {}
    holders: Counter[int] = Counter()
    inputs = {step.result for step in steps if step.opcode == "input"}
    total = 0
    out = []

    def take(number: int) -> int:
        holders[number] += 1
        return size[number] if holders[number] == 1 else 0

    def leave(number: int) -> int:
        holders[number] -= 1
        return size[number] if holders[number] == 0 else 0

    for number in inputs:
        total += take(number)
    for index, step in enumerate(steps):
        sources = held[step.operands[0]][1:] or step.operands if step.opcode == "drop_level" else ()
        held[step.result] = (step.result, *sources)
        total += sum(map(take, held[step.result]))
        out.append(total)
        for operand in set(step.operands):
            if last_use[operand] == index and operand not in network.output.ciphertexts:
                total -= sum(map(leave, held[operand]))
    return out
