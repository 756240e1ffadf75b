"""The parts of ports and delays alone: AXI4-Lite, a polynomial's port, a delay line after a reset."""

import random
from typing import Any

import axi
import cocotb
import pytest
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge, RisingEdge, Timer
from fixtures import Simulate


async def reset(dut: Any, zero: tuple[str, ...]) -> None:
    """Inputs at zero, a reset, and the clock. Registers start with random bits: no edge comes before it."""
    for name in ("rst_ni", *zero):
        getattr(dut, name).value = 0
    await Timer(1, unit="step")
    Clock(dut.clk_i, 2, unit="step").start()
    for _ in range(3):
        await FallingEdge(dut.clk_i)
    dut.rst_ni.value = 1


AXIL = ("s_axil_awvalid_i", "s_axil_wvalid_i", "s_axil_arvalid_i", "s_axil_bready_i", "s_axil_rready_i")


async def watch_writes(dut: Any, seen: list[tuple[int, int]]) -> None:
    """Every word that the block behind the port is given."""
    while True:
        await RisingEdge(dut.clk_i)
        if dut.write_o.value:
            seen.append((int(dut.write_address_o.value), int(dut.write_data_o.value)))


@cocotb.test(timeout_time=100_000, timeout_unit="step")
async def takes_every_write_once(dut: Any) -> None:
    """In any order of address and data; only aligned whole words reach the block; the rest is answered."""
    await reset(dut, AXIL)
    seen: list[tuple[int, int]] = []
    cocotb.start_soon(watch_writes(dut, seen))
    expected = []
    for _ in range(300):
        address, data = random.randrange(128) & random.choice([0x7C, 0x7F]), random.getrandbits(32)
        strobe, known = random.choice([15, 15, 15, 7, 0]), random.getrandbits(1)
        dut.write_known_i.value = known
        response = await axi.write(dut, address, data, strobe)
        whole = strobe == 15 and address % 4 == 0
        expected += [(address, data)] if whole else []
        assert response == (axi.OKAY if whole and known else axi.SLVERR)
    assert seen == expected


@cocotb.test(timeout_time=100_000, timeout_unit="step")
async def waits_for_address_and_data(dut: Any) -> None:
    """Both are taken before the other comes; one alone does nothing, however long it waits."""
    await reset(dut, AXIL)
    for first, second in (("aw", "w"), ("w", "aw")):
        dut.s_axil_awaddr_i.value, dut.s_axil_wdata_i.value, dut.s_axil_wstrb_i.value = 8, 5, 15
        assert dut.s_axil_awready_o.value == dut.s_axil_wready_o.value == 1
        getattr(dut, f"s_axil_{first}valid_i").value = 1
        await FallingEdge(dut.clk_i)
        getattr(dut, f"s_axil_{first}valid_i").value = 0
        for _ in range(20):
            await FallingEdge(dut.clk_i)
            assert not dut.write_o.value
            assert not dut.s_axil_bvalid_o.value
        assert not getattr(dut, f"s_axil_{first}ready_o").value
        getattr(dut, f"s_axil_{second}valid_i").value = 1
        await FallingEdge(dut.clk_i)
        getattr(dut, f"s_axil_{second}valid_i").value = 0
        assert dut.write_o.value
        for _ in range(20):  # the answer waits for its receiver
            await FallingEdge(dut.clk_i)
            assert dut.s_axil_bvalid_o.value
        dut.s_axil_bready_i.value = 1
        await FallingEdge(dut.clk_i)
        dut.s_axil_bready_i.value = 0
        assert not dut.s_axil_bvalid_o.value


@cocotb.test(timeout_time=100_000, timeout_unit="step")
async def answers_every_read(dut: Any) -> None:
    await reset(dut, AXIL)
    for _ in range(200):
        address, value = random.randrange(128) & random.choice([0x7C, 0x7F]), random.getrandbits(32)
        known = random.getrandbits(1)
        dut.read_value_i.value, dut.read_known_i.value = value, known
        good = address % 4 == 0 and known
        assert await axi.read(dut, address) == (value, axi.OKAY if good else axi.SLVERR)
        assert int(dut.read_address_o.value) == address


@cocotb.test(timeout_time=100_000, timeout_unit="step")
async def a_frame_is_checked(dut: Any) -> None:
    """Beats of any range, early and late flags, pauses of both sides, against a model of the port."""
    await reset(dut, ("en_i", "need_i", "tvalid_i", "tlast_i", "time_i"))
    words, beats = int(dut.Words.value), 1 << int(dut.TimeWidth.value)
    modulus = (1 << 60) - 93
    dut.modulus_i.value = modulus
    short = skip = False
    time = 0
    for _ in range(4000):
        need, en, valid = (random.random() < rate for rate in (0.8, 0.8, 0.8))
        last = random.random() < (0.7 if time == beats - 1 or skip else 0.1)
        data = [random.choice([0, modulus - 1, modulus, random.getrandbits(64), random.randrange(modulus)])
                if random.random() < 0.2 else random.randrange(modulus) for _ in range(words)]  # fmt: skip
        for name, value in (("need_i", need), ("tvalid_i", valid), ("tlast_i", last), ("time_i", time),
                            ("tdata_i", sum(word << 64 * i for i, word in enumerate(data)))):  # fmt: skip
            getattr(dut, name).value = int(value)
        ok = not need or short or (valid and not skip)
        en = en and ok  # as the pipeline does: it moves when every port is well
        dut.en_i.value = int(en)
        await RisingEdge(dut.clk_i)
        taken = need and en and not short
        bad = [word >= modulus for word in data]
        assert bool(dut.ok_o.value) == ok
        assert bool(dut.taken_o.value) == taken
        assert bool(dut.tready_o.value) == (skip or taken)
        assert bool(dut.range_o.value) == (taken and any(bad))
        assert bool(dut.short_o.value) == (taken and last and time < beats - 1)
        assert bool(dut.missing_o.value) == (taken and not last and time == beats - 1)
        out = int(dut.words_o.value)
        assert [out >> 60 * i & (1 << 60) - 1 for i in range(words)] == [
            0 if short or wrong else word for word, wrong in zip(data, bad, strict=True)
        ]
        if skip and valid and last:
            skip = False
        elif taken and not last and time == beats - 1:
            skip = True
        if need and en:
            if taken and last and time < beats - 1:
                short = True
            elif time == beats - 1:
                short = False
            time = (time + 1) % beats
        await FallingEdge(dut.clk_i)


@cocotb.test(timeout_time=100_000, timeout_unit="step")
async def delays_and_forgets(dut: Any) -> None:
    """Words come out Depth enabled cycles later; after a reset a cleared line gives zeros until then."""
    depth, cleared = int(dut.Depth.value), bool(int(dut.Cleared.value))
    await reset(dut, ("en_i", "d_i"))
    for _ in range(6):
        line: list[int | None] = [0 if cleared else None] * depth
        for _ in range(random.choice([1, depth, 5 * depth])):
            enabled, word = random.random() < 0.8, random.randrange(1, 1 << 60)
            dut.en_i.value, dut.d_i.value = int(enabled), word
            await FallingEdge(dut.clk_i)
            if enabled:
                line = [*line[1:], word]
            assert line[0] is None or int(dut.q_o.value) == line[0]
        dut.rst_ni.value = 0
        await FallingEdge(dut.clk_i)
        dut.rst_ni.value = 1
        if cleared:
            assert int(dut.q_o.value) == 0


def test_axil_port(simulate: Simulate) -> None:
    for only in ("takes_every_write_once", "waits_for_address_and_data", "answers_every_read"):
        simulate("axil_port", only=only, random_start=True)


def test_frame_input(simulate: Simulate) -> None:
    simulate("frame_input", {"Words": 2, "TimeWidth": 3}, only="a_frame_is_checked", random_start=True)


@pytest.mark.parametrize(("depth", "cleared"), [(2, 0), (7, 0), (7, 1)])
def test_delay_line(simulate: Simulate, depth: int, cleared: int) -> None:
    simulate("delay_line", {"Depth": depth, "Cleared": cleared}, only="delays_and_forgets", random_start=True)
