"""Adders, multipliers, butterfly: every operand at small widths, random and corner ones at full width."""

import itertools
import os
import random
from collections.abc import Iterable
from typing import Any

import cocotb
import pytest
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge, Timer
from fixtures import Simulate
from sparse import NARROW, WIDE, Sparse, moduli

LISTS = {
    # 251 = 2^8 - 5; 127 = 2^7 - 1 in scaled form; 249 = 2^8 - 7.
    "small": (8, 4, [Sparse(8, 2, 1), Sparse(7, 0, 0), Sparse(8, 4, 3, True)]),
    "wide": (60, 36, [*WIDE, *NARROW]),
    "narrow": (51, 28, NARROW),
}


def operands(q: int, count: int) -> Iterable[tuple[int, int]]:
    """All pairs of residues if these are at most `count`; otherwise corners and random ones."""
    if q * q <= count:
        return itertools.product(range(q), range(q))
    corners = [0, 1, 2, q // 2, q // 2 + 1, q - 2, q - 1]
    pairs = list(itertools.product(corners, corners))
    return pairs + [(random.randrange(q), random.randrange(q)) for _ in range(count - len(pairs))]


async def drive(
    dut: Any, inputs: Iterable[dict[str, int]], latency: int, outputs: list[str]
) -> list[tuple[int, ...]]:
    """One set of inputs every enabled cycle, with pauses; the outputs `latency` enabled cycles later."""
    seen: list[tuple[int, ...]] = []
    inputs = list(inputs)
    clock = Clock(dut.clk_i, 2, unit="step").start()
    for cycle in range(len(inputs) + latency):
        await FallingEdge(dut.clk_i)
        while random.random() < 0.01:
            dut.en_i.value = 0
            await FallingEdge(dut.clk_i)
        if cycle >= latency:
            seen.append(tuple(int(getattr(dut, name).value) for name in outputs))
        dut.en_i.value = 1
        for name, value in inputs[min(cycle, len(inputs) - 1)].items():
            getattr(dut, name).value = value
    clock.cancel()
    return seen


def chosen() -> tuple[int, list[Sparse]]:
    width, _, forms = LISTS[os.environ["MODULI"]]
    return width, forms


@cocotb.test()
async def adds(dut: Any) -> None:
    width, subtract = int(dut.Width.value), int(dut.Subtract.value)
    moduli = range(1, 1 << width) if width < 6 else [Sparse(60, 17, 17).value, (1 << 60) - 1, 3, 1 << 59]
    for q in moduli:
        for a, b in operands(q, 2000):
            dut.modulus_i.value, dut.a_i.value, dut.b_i.value = q, a, b
            await Timer(1, unit="step")
            assert int(dut.r_o.value) == ((a - b) if subtract else (a + b)) % q


@cocotb.test()
async def multiplies_by_barrett(dut: Any) -> None:
    width = int(dut.Width.value)
    full = [(1 << 60) - (1 << 18) + 1, (1 << 60) - 1, (1 << 59) + 1, (1 << 60) - 93]
    cases = [
        (q, a, b)
        for q in (range((1 << width - 1) + 1, 1 << width) if width < 8 else full)
        for a, b in operands(q, 4000)
    ]
    inputs = [{"modulus_i": q, "ratio_i": (1 << 2 * width) // q, "a_i": a, "b_i": b} for q, a, b in cases]
    seen = await drive(dut, inputs, 11, ["c_o"])
    assert seen == [(a * b % q,) for q, a, b in cases]


@cocotb.test()
async def multiplies_by_shifts(dut: Any) -> None:
    width, forms = chosen()
    cases = [
        (sel, form, a, b)
        for sel, form in enumerate(forms)
        for a, b in operands(form.value, 1 << 16 if width == 8 else 1500)
    ]
    random.shuffle(cases)
    inputs = [{"sel_i": sel, "a_i": a << width - f.bits, "b_i": b} for sel, f, a, b in cases]
    seen = await drive(dut, inputs, 7, ["c_o"])
    assert seen == [((a * b % f.value) << width - f.bits,) for _, f, a, b in cases]


@cocotb.test()
async def butterflies(dut: Any) -> None:
    width, forms = chosen()
    dut.rst_ni.value = 0
    await Timer(2, unit="step")
    dut.rst_ni.value = 1
    cases = []
    for sel, f in enumerate(forms):
        q, scale = f.value, width - f.bits
        half = pow(2, -1, q)
        for a, b in operands(q, 1 << 16 if width == 8 else 800):
            w, inverse = random.choice([0, 1, q - 1, random.randrange(q)]), random.getrandbits(1)
            x, y = (
                ((a + b) * half % q, (a - b) * half * w % q)
                if inverse
                else ((a + w * b) % q, (a - w * b) % q)
            )
            inputs = {"sel_i": sel, "inverse_i": inverse, "a_i": a << scale, "b_i": b << scale, "w_i": w}
            cases.append((inputs, (x << scale, y << scale)))
    random.shuffle(cases)
    assert await drive(dut, [inputs for inputs, _ in cases], 9, ["x_o", "y_o"]) == [out for _, out in cases]


def sparse_parameters(name: str) -> dict[str, object]:
    width, fold, forms = LISTS[name]
    select = max(1, (len(forms) - 1).bit_length())
    return {
        "Width": width, "Count": len(forms), "SelWidth": select, "FoldWidth": fold,
        "Moduli": moduli(forms, width),
    }  # fmt: skip


# A model is compiled for each set of parameters, which takes most of the time: the short run has few of each.
# In it, test_butterfly[wide] has the wide multiplier, and test_key_switch.py products that are not of tiles.
FULL = pytest.mark.full


@pytest.mark.parametrize(
    ("width", "subtract"), [(4, 0), (4, 1), pytest.param(60, 0, marks=FULL), pytest.param(60, 1, marks=FULL)]
)
def test_mod_add(simulate: Simulate, width: int, subtract: int) -> None:
    simulate("mod_add", {"Width": width, "Subtract": subtract}, only="adds")


@pytest.mark.parametrize("width", [5, 60])
def test_mod_mul_barrett(simulate: Simulate, width: int) -> None:
    simulate("mod_mul_barrett", {"Width": width}, only="multiplies_by_barrett")


@pytest.mark.parametrize(
    ("name", "products"),
    [
        ("small", False),
        ("narrow", False),
        pytest.param("wide", False, marks=FULL),
        *(pytest.param(name, True, marks=FULL) for name in LISTS),
    ],
)
def test_mod_mul_sparse(simulate: Simulate, name: str, products: bool) -> None:
    simulate(
        "mod_mul_sparse",
        sparse_parameters(name),
        {"MODULI": name},
        only="multiplies_by_shifts",
        products=products,
    )


@pytest.mark.parametrize("name", ["small", "wide", pytest.param("narrow", marks=FULL)])
def test_butterfly(simulate: Simulate, name: str) -> None:
    simulate("butterfly", sparse_parameters(name), {"MODULI": name}, only="butterflies")
