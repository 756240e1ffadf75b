"""Plans of a program's bootstraps: shipped bootstrappings on the rings of its ciphertexts."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache, lru_cache, partial

from keywright._core import BootstrapperPlan
from keywright.errors import ParameterError
from keywright.program.operands.bootstraps import Bootstrap
from keywright.program.program import Program

from .chain import Chain, shapes
from .chain_sources import chain_of

SMALLEST_LOG_N = 13
"""Smaller rings have too few levels of the shipped widths."""
LEAST_LEVELS = 3
"""A smaller ring is considered if it has so many levels above those at which a bootstrap begins."""

Subring = tuple[int, int, Sequence[int] | None]
"""log2 of the degree, highest level, special primes: as for `Parameters.with_subrings`."""


@cache
def shipped_plan(name: str) -> BootstrapperPlan:
    """Return a shipped bootstrapping, made once: it takes a tenth of a second and a megabyte."""
    return BootstrapperPlan.preset(name)


def ring_levels(plan: BootstrapperPlan) -> list[Subring]:
    """Return the smaller rings for values between bootstraps, by falling degree: each with the highest level
    at which a key is secure, and all special primes."""
    chain, least = chain_of(plan.parameters), plan.input_level + LEAST_LEVELS
    out: list[Subring] = []
    for log_n in range(chain.log_n - 1, SMALLEST_LOG_N - 1, -1):
        level = highest_level(replace(chain, log_n=log_n), plan.output_level)
        if level is not None and level >= least:
            out.append((log_n, level, None))
    return out


def highest_level(chain: Chain, most: int) -> int | None:
    """Return the highest level, at most ``most``, at which a key with at least two primes per digit is secure
    in the ring of a chain. Shorter digits would cost more than a larger ring."""
    for level in range(most, 0, -1):
        if any(shape.alpha > 1 for shape in shapes(replace(chain, q=chain.q[: level + 1]), level)):
            return level
    return None


def require_presets(program: Program) -> None:
    """Refuse a program whose bootstraps no preset has, so that no file can name them.

    Raises:
        ParameterError: it has such a bootstrap.
    """
    presets = BootstrapperPlan.presets()
    for bootstrap in program.operands.bootstraps:
        if bootstrap.preset not in presets:
            own = f"preset {bootstrap.preset!r}" if bootstrap.preset else "a plan of your own"
            raise ParameterError(
                f"the program bootstraps with {own}, and files name a preset of this release; compile the "
                f"model with parameters= one of {', '.join(presets)}",
                code="preset",
            )


def bootstrap_plans(program: Program) -> list[BootstrapperPlan]:
    """Return the plans that a program's bootstraps name, in order, on parameters with the program's rings.

    Raises:
        ParameterError: no preset has one of its bootstraps.
    """
    require_presets(program)
    return [preset_plan(option, program) for option in program.operands.bootstraps]


def preset_plan(option: Bootstrap, program: Program) -> BootstrapperPlan:
    """Return the plan of one bootstrap. A preset's budget of keys is for its own ring, slots and levels. If
    other keys exceed it, the plan with the fewest bytes is used."""
    rings = tuple(used_rings(shipped_plan(option.preset), program))
    levels, values = (option.input_log_n or None, option.output_level), "pair" if option.pairs else None
    return _plan_of(option.preset, option.slots, rings, *levels, values)


@lru_cache(maxsize=16)
def _plan_of(
    preset: str,
    slots: int,
    subrings: tuple[Subring, ...],
    input_log_n: int | None,
    output_level: int,
    values: str | None,
) -> BootstrapperPlan:
    """Return the plan, which is made once: every batch and every choice of keys of a network asks for it."""
    make = partial(
        BootstrapperPlan.preset,
        preset,
        slots=slots,
        subrings=subrings,
        input_log_n=input_log_n,
        output_level=output_level,
        values=values,
    )
    try:
        return make()
    except ParameterError as error:
        if error.what != "key_budget":
            raise
        return make(key_budget="fewest")


def used_rings(plan: BootstrapperPlan, program: Program) -> list[Subring]:
    """Return the smaller rings of a program's ciphertexts."""
    used = set(program.rings.values())
    return [ring for ring in ring_levels(plan) if ring[0] in used]
