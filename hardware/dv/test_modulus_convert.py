"""The MOD unit of digits of several primes against exact integers: every target, corner words, pauses."""

import math
import random
from typing import Any

import cocotb
import pytest
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge
from fixtures import Simulate
from key_switch_package import FRACTION_BITS, share
from sparse import NARROW, WIDE, Sparse, moduli

TARGETS = {60: [WIDE[0], NARROW[0], WIDE[2]], 51: [NARROW[0], NARROW[3]]}
SOURCES = [(WIDE[1], WIDE[2]), (NARROW[1], NARROW[2]), (WIDE[0], NARROW[1]), (NARROW[4],)]
TERMS = 2
LATENCY = 11 + TERMS


def converted(
    sources: tuple[Sparse, ...], rows: list[int], target: Sparse
) -> tuple[list[int], int, int, int]:
    """Factors, quotient, its multiple of the sources' product, and the result."""
    p, product = target.value, math.prod(form.value for form in sources)
    shares = sum(share(form, y) for form, y in zip(sources, rows, strict=True))
    quotient = (shares + (1 << FRACTION_BITS - 1)) >> FRACTION_BITS
    x = sum(y * (product // form.value) for form, y in zip(sources, rows, strict=True)) - quotient * product
    assert abs(x) * (1 << FRACTION_BITS) <= (product << FRACTION_BITS) // 2 + 2 * len(sources) * product
    factors = [product // form.value % p for form in sources]
    return factors, quotient, quotient * product % p, x % p


@cocotb.test()
async def converts(dut: Any) -> None:
    """A word every cycle, of changing sources and targets, centred or only multiplied with a constant."""
    targets = TARGETS[int(dut.Width.value)]
    width = int(dut.Width.value)
    dut.rst_ni.value, dut.en_i.value = 0, 0
    Clock(dut.clk_i, 2, unit="step").start()
    await FallingEdge(dut.clk_i)
    dut.rst_ni.value = 1
    expected: list[int] = []
    quotients: list[int] = []
    for cycle in range(3000):
        await FallingEdge(dut.clk_i)
        while random.random() < 0.1:
            dut.en_i.value = 0
            await FallingEdge(dut.clk_i)
        if cycle > 0:
            assert int(dut.quotient_o.value) == quotients[-1]
        if cycle >= LATENCY:
            assert int(dut.x_o.value) == expected[cycle - LATENCY]
        sel = random.randrange(len(targets))
        target, sources = targets[sel], random.choice(SOURCES)
        rows = [random.choice([0, 1, form.value // 2, form.value // 2 + 1, form.value - 1])
                if random.random() < 0.3 else random.randrange(form.value) for form in sources]  # fmt: skip
        active, wide = len(sources), sum(1 << t for t, form in enumerate(sources) if form.bits == 60)
        factors, quotient, whole, x = converted(sources, rows, target)
        if random.random() < 0.2:  # a row: one word times a constant
            rows, factors, active = rows[:1], [random.randrange(target.value)], 0
            quotient, whole, x = 0, 0, rows[0] * factors[0] % target.value
        rows, factors = rows + [0] * (TERMS - len(rows)), factors + [0] * (TERMS - len(factors))
        dut.en_i.value, dut.sel_i.value, dut.wide_i.value = 1, sel, wide
        dut.active_i.value = (1 << active) - 1
        dut.y_i.value = sum(y << 60 * t for t, y in enumerate(rows))
        dut.factors_i.value = sum(factor << 60 * t for t, factor in enumerate(factors))
        dut.whole_i.value = whole
        quotients.append(quotient)
        expected.append(x << width - target.bits)


@cocotb.test()
async def raises(dut: Any) -> None:
    """Residues of one prime as those of another: about the half, corners, and words that are only scaled."""
    width, targets = int(dut.Width.value), TARGETS[int(dut.Width.value)]
    dut.en_i.value = 0
    Clock(dut.clk_i, 2, unit="step").start()
    expected: list[int] = []
    for cycle in range(3000):
        await FallingEdge(dut.clk_i)
        while random.random() < 0.1:
            dut.en_i.value = 0
            await FallingEdge(dut.clk_i)
        if cycle >= 4:
            assert int(dut.x_o.value) == expected[cycle - 4]
        sel, source = random.randrange(len(targets)), random.choice([WIDE[1], NARROW[1]])
        target, half = targets[sel], 1 << source.bits - 1
        y = random.choice([0, 1, half - 1, half, half + 1, source.value - 1, target.value % source.value,
                           random.randrange(source.value), random.randrange(source.value)])  # fmt: skip
        centre = random.getrandbits(1)
        dut.en_i.value, dut.sel_i.value, dut.y_i.value, dut.centre_i.value = 1, sel, y, centre
        dut.threshold_i.value = half >> 30
        dut.row_modulus_i.value = source.value % target.value
        expected.append(
            (y - (source.value if centre and y >= half else 0)) % target.value << width - target.bits
        )


@pytest.mark.parametrize("width", [60, pytest.param(51, marks=pytest.mark.full)])
def test_modulus_raise(simulate: Simulate, width: int) -> None:
    """To primes of 51 bits, chain B of test_key_switch.py raises in the short run."""
    forms = TARGETS[width]
    parameters = {"Width": width, "Count": len(forms), "SelWidth": (len(forms) - 1).bit_length()}
    simulate("modulus_raise", {**parameters, "Moduli": moduli(forms, width)}, only="raises")


@pytest.mark.parametrize("width", [60, 51])
def test_modulus_convert(simulate: Simulate, width: int) -> None:
    forms = TARGETS[width]
    simulate(
        "modulus_convert",
        {
            "Width": width, "Terms": TERMS, "Count": len(forms), "SelWidth": (len(forms) - 1).bit_length(),
            "FoldWidth": {60: 37, 51: 28}[width], "Moduli": moduli(forms, width),
        },
        only="converts",
    )  # fmt: skip
