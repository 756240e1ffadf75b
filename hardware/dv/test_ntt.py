"""The transform pipeline against the definition: every kind of neighbour, pauses, corner values."""

import random
from typing import Any

import cocotb
import pytest
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge
from fixtures import BUILD, Simulate
from pipe_twiddles import lines, log_lanes, tables
from sparse import NARROW, WIDE, moduli
from transforms import forward, latency, lead, packed, scrambled, unpacked

FORMS = [WIDE[0], NARROW[2], WIDE[1]]
WIDTH = 60


def random_polynomial(q: int, n: int) -> list[int]:
    kind = random.randrange(8)
    if kind == 0:
        return [q - 1] * n
    if kind == 1:
        return [0] * n
    if kind == 2:
        return [random.choice([0, 1, q - 1]) for _ in range(n)]
    return [random.randrange(q) for _ in range(n)]


@cocotb.test()
async def transforms_streams(dut: Any) -> None:
    log_n = int(dut.LogN.value)
    k, n = log_lanes(log_n), 1 << log_n
    lanes = 1 << k
    beats = n // lanes
    count = {2: 12, 3: 5, 4: 3}[k] << 4 * k - log_n
    dut.rst_ni.value, dut.en_next_i.value = 0, 0
    Clock(dut.clk_i, 2, unit="step").start()
    for _ in range(3):
        await FallingEdge(dut.clk_i)
    dut.rst_ni.value = 1

    operations, expected = [], []
    for i in range(count):
        sel, inverse = random.randrange(len(FORMS)), random.getrandbits(1) if i > 1 else i
        form = FORMS[sel]
        polynomial = random_polynomial(form.value, n)
        evaluations = forward(polynomial, form.value)
        source, result = (
            (evaluations, scrambled(polynomial)) if inverse else (scrambled(polynomial), evaluations)
        )
        shift = WIDTH - form.bits
        operations.append((sel, inverse, [word << shift for word in source]))
        expected.append([word << shift for word in result])

    seen: dict[int, list[int]] = {}
    moves_next = False
    tags = [(0, 0)] * 3  # of the result in this cycle and of the two after it
    for cycle in range((count + 1) * beats + 1000):
        await FallingEdge(dut.clk_i)
        moves, moves_next = moves_next, random.random() >= 0.02
        dut.en_next_i.value = int(moves_next)
        while not moves:
            await FallingEdge(dut.clk_i)
            moves, moves_next = moves_next, random.random() >= 0.02
            dut.en_next_i.value = int(moves_next)
        tags = [*tags[1:], (int(dut.user_o.value), int(dut.time_o.value))]
        user, time = tags[0]
        if user:
            # One polynomial and the pipe's latency after the tag.
            assert user in seen or cycle == user * beats + latency(log_n)
            seen.setdefault(user, []).extend(unpacked(int(dut.data_o.value), WIDTH, lanes))
            assert len(seen[user]) == lanes * (time + 1)
        dut.time_i.value = cycle % beats
        index = cycle // beats
        dut.user_i.value = index + 1 if index < count else 0
        if index < count:
            dut.sel_i.value, dut.inverse_i.value = operations[index][:2]
        index, beat = divmod(cycle - lead(log_n), beats)
        if 0 <= index < count:
            dut.data_i.value = packed(operations[index][2][beat * lanes : (beat + 1) * lanes], WIDTH)
    assert [seen.get(i + 1) for i in range(count)] == expected


@pytest.mark.parametrize(
    ("log_n", "from_memory"),
    [
        (10, False),
        *(pytest.param(log_n, False, marks=pytest.mark.full) for log_n in (8, 11, 12, 13, 14, 15, 16)),
        *(pytest.param(log_n, True, marks=pytest.mark.full) for log_n in (8, 10, 11, 13)),
    ],
)
def test_ntt_pipe(simulate: Simulate, request: pytest.FixtureRequest, log_n: int, from_memory: bool) -> None:
    folder = BUILD / "results" / request.node.name
    folder.mkdir(parents=True, exist_ok=True)
    write = lines if from_memory else tables
    write(folder / "tables", [form.value for form in FORMS], log_n, WIDTH)
    memory = {"FromMemory": 1} if from_memory else {}
    simulate(
        "ntt_pipe",
        {
            "LogN": log_n, "Width": WIDTH, "Count": 3, "SelWidth": 2, "UserWidth": 8, "FoldWidth": 36,
            "Moduli": moduli(FORMS, WIDTH), **memory,
        },
        # Tiles take as long to compile as all the rest: test_arithmetic.py has them, and one degree here.
        products=log_n != 8,
    )  # fmt: skip
