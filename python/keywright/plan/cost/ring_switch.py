"""The work of switching a ciphertext from another ring, and the best keys for it."""

from functools import cache

from keywright.plan.ring.chain import Chain, Shape, shapes

from .model import CostModel, Work


def ring_switch_parts(chain: Chain, source: int) -> int | None:
    """Return the number of keys of a switch into the ring of a chain from the ring of degree 2^source, or
    None from a smaller ring, which takes a single key."""
    return 1 << (source - chain.log_n) if source > chain.log_n else None


def ring_switch_work(shape: Shape, level: int, parts: int | None) -> Work | None:
    """Return the work of one switch at a level with keys of a shape, or None above their level."""
    special = list(shape.special_primes)
    row = shape.chain.widths.ring_switch(shape.level, shape.alpha, special, True, level, parts)
    return None if row is None else Work.counted(row, shape.chain.log_n)


@cache
def ring_switch_shape(chain: Chain, level: int, parts: int | None) -> Shape:
    """Return the fastest shape by the engine's built-in proportions: makers and users of keys agree on it,
    independent of calibrations.

    Raises:
        ValueError: no key of the level is secure.
    """
    weights = CostModel().of_degree(chain.log_n)
    results = []
    for shape in shapes(chain, level):
        work = ring_switch_work(shape, level, parts)
        if work is not None:
            results.append((work.seconds(weights), shape.stored_bytes, shape))
    if not results:
        raise ValueError(
            f"no key of level {level} is within {chain.modulus_bound} bits; use a lower "
            "level or a larger ring"
        )
    return min(results, key=lambda entry: entry[:2])[2]
