"""AXI4-Stream and AXI4-Lite as the tests need them. Signals change on falling edges, count on rising.

A master of AXI4-Lite offers address and data apart, in any order, and is ready for an answer at random.
"""

import random
from collections.abc import Sequence
from typing import Any

import cocotb
from cocotb.triggers import FallingEdge, RisingEdge

OKAY, SLVERR = 0, 2
# Cycles after which a register block has hung: it answers in a few.
PATIENCE = 200


async def send(dut: Any, words: Sequence[int], last: int | None = -1, rate: float = 1.0) -> None:
    """Sends a frame on `s_axis`, with the last flag on beat `last` (None: on none)."""
    flagged = None if last is None else last % len(words)
    for i, word in enumerate(words):
        while rate < 1 and random.random() >= rate:
            dut.s_axis_tvalid_i.value = 0
            await FallingEdge(dut.clk_i)
        dut.s_axis_tdata_i.value = word
        dut.s_axis_tlast_i.value = int(i == flagged)
        dut.s_axis_tvalid_i.value = 1
        while True:
            await RisingEdge(dut.clk_i)
            taken = bool(dut.s_axis_tready_o.value)
            await FallingEdge(dut.clk_i)
            if taken:
                break
    dut.s_axis_tvalid_i.value = 0


async def receive(dut: Any, rate: float = 1.0) -> tuple[list[int], bool]:
    """Receives a frame on `m_axis`: its words, and whether it is to be thrown away."""
    words: list[int] = []
    while True:
        dut.m_axis_tready_i.value = int(rate >= 1 or random.random() < rate)
        await RisingEdge(dut.clk_i)
        taken = dut.m_axis_tvalid_o.value and dut.m_axis_tready_i.value
        last, bad = False, False
        if taken:
            words.append(int(dut.m_axis_tdata_o.value))
            last, bad = bool(dut.m_axis_tlast_o.value), bool(dut.m_axis_tuser_o.value)
        await FallingEdge(dut.clk_i)
        if last:
            dut.m_axis_tready_i.value = 0
            return words, bad


async def _offer(dut: Any, channel: str) -> None:
    """Holds the valid signal of a channel until its word is taken."""
    for _ in range(random.choice([0, 0, 1, 3])):
        await FallingEdge(dut.clk_i)
    getattr(dut, f"s_axil_{channel}valid_i").value = 1
    for _ in range(PATIENCE):
        await RisingEdge(dut.clk_i)
        taken = bool(getattr(dut, f"s_axil_{channel}ready_o").value)
        await FallingEdge(dut.clk_i)
        if taken:
            getattr(dut, f"s_axil_{channel}valid_i").value = 0
            return
    raise AssertionError(f"a word is never taken from {channel}")


async def _answer(dut: Any, channel: str, signals: Sequence[str]) -> list[int]:
    """Takes the answer of a channel; the values of its signals. An answer stays until it is taken."""
    ready = getattr(dut, f"s_axil_{channel}ready_i")
    held: list[int] | None = None
    for _ in range(PATIENCE):
        ready.value = random.getrandbits(1)
        await RisingEdge(dut.clk_i)
        valid = bool(getattr(dut, f"s_axil_{channel}valid_o").value)
        values = [int(getattr(dut, f"s_axil_{channel}{signal}_o").value) for signal in signals]
        taken = valid and bool(ready.value)
        assert held is None or (valid and values == held), f"an answer of {channel} is withdrawn"
        held = values if valid else None
        await FallingEdge(dut.clk_i)
        if taken:
            ready.value = 0
            return values
    raise AssertionError(f"no answer comes from {channel}")


async def write(dut: Any, address: int, data: int, strobe: int = 15) -> int:
    """Writes a register; the response."""
    dut.s_axil_awaddr_i.value, dut.s_axil_wdata_i.value, dut.s_axil_wstrb_i.value = address, data, strobe
    offers = [cocotb.start_soon(_offer(dut, channel)) for channel in ("aw", "w")]
    for offer in offers:
        await offer
    return (await _answer(dut, "b", ["resp"]))[0]


async def read(dut: Any, address: int) -> tuple[int, int]:
    """Reads a register: its value and the response."""
    dut.s_axil_araddr_i.value = address
    await _offer(dut, "ar")
    value, response = await _answer(dut, "r", ["data", "resp"])
    return value, response
