"""AXI4-Stream and AXI4-Lite as the tests need them. Signals change on falling edges, count on rising."""

import random
from collections.abc import Sequence
from typing import Any

from cocotb.triggers import FallingEdge, RisingEdge

OKAY, SLVERR = 0, 2


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


async def write(dut: Any, address: int, data: int, strobe: int = 15) -> int:
    """Writes a register; the response."""
    dut.s_axil_awaddr_i.value, dut.s_axil_wdata_i.value, dut.s_axil_wstrb_i.value = address, data, strobe
    dut.s_axil_awvalid_i.value = dut.s_axil_wvalid_i.value = 1
    while True:
        await RisingEdge(dut.clk_i)
        taken = bool(dut.s_axil_awready_o.value)
        await FallingEdge(dut.clk_i)
        if taken:
            break
    dut.s_axil_awvalid_i.value = dut.s_axil_wvalid_i.value = 0
    dut.s_axil_bready_i.value = 1
    while True:
        await RisingEdge(dut.clk_i)
        valid, response = bool(dut.s_axil_bvalid_o.value), int(dut.s_axil_bresp_o.value)
        await FallingEdge(dut.clk_i)
        if valid:
            dut.s_axil_bready_i.value = 0
            return response


async def read(dut: Any, address: int) -> tuple[int, int]:
    """Reads a register: its value and the response."""
    dut.s_axil_araddr_i.value = address
    dut.s_axil_arvalid_i.value = 1
    while True:
        await RisingEdge(dut.clk_i)
        taken = bool(dut.s_axil_arready_o.value)
        await FallingEdge(dut.clk_i)
        if taken:
            break
    dut.s_axil_arvalid_i.value = 0
    dut.s_axil_rready_i.value = 1
    while True:
        await RisingEdge(dut.clk_i)
        valid, value, response = (
            bool(dut.s_axil_rvalid_o.value),
            int(dut.s_axil_rdata_o.value),
            dut.s_axil_rresp_o,
        )
        response = int(response.value)
        await FallingEdge(dut.clk_i)
        if valid:
            dut.s_axil_rready_i.value = 0
            return value, response
