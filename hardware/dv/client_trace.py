"""What each part of client_core does in which cycles, as seen in a simulation."""

import json
from pathlib import Path
from typing import Any

from cocotb.triggers import RisingEdge

FRAMES = {0: "m", 2: "b", 3: "c0", 4: "c1", 5: "s"}  # by pass, see client_pass_pkg
RESULTS = {0: "m + e0", 1: "a v + e1", 2: "b v + e0 + m", 3: "c0", 4: "c1", 5: "c0 + c1 s", 6: "plaintext"}
# Pauses shorter than this (a bank's turn, a full FIFO) belong to what they interrupt.
GAP = 24


class Trace:
    """Intervals of activity by lane: `lane -> [[what, first cycle, last cycle], ...]`."""

    def __init__(self) -> None:
        self.lanes: dict[str, list[list[Any]]] = {}
        self.cycle = 0

    def note(self, lane: str, what: str) -> None:
        """A lane does something in the current cycle."""
        intervals = self.lanes.setdefault(lane, [])
        if intervals and intervals[-1][0] == what and self.cycle - intervals[-1][2] <= GAP:
            intervals[-1][2] = self.cycle
        else:
            intervals.append([what, self.cycle, self.cycle])

    def store(self, path: Path) -> None:
        """Writes the lanes as JSON."""
        path.write_text(json.dumps({"cycles": self.cycle, "lanes": self.lanes}), encoding="utf-8")


async def watch(dut: Any, trace: Trace) -> None:
    """Follows the core from its next busy cycle until it rests."""
    unit = dut.u_pass
    while not dut.busy_o.value:
        await RisingEdge(dut.clk_i)
    answers = ["plaintext"] if dut.decrypting_q.value else ["c0", "c1"]
    while dut.busy_o.value:
        if dut.s_axis_tvalid_i.value and dut.s_axis_tready_o.value:
            trace.note("input", FRAMES[int(dut.pass_q.value)])
        if dut.sample_ready.value:
            trace.note("samplers", "v, e0, e1")
        if dut.uniform_ready.value:
            trace.note("expander", "a")
        if dut.ntt_busy.value:
            trace.note("butterflies", "INTT" if dut.decrypting_q.value else "three NTTs")
        if int(unit.valid_q.value) >> 10:
            trace.note("x B + A", RESULTS[int(unit.pass_out.value)])
        if dut.m_axis_tvalid_o.value and dut.m_axis_tready_i.value:
            trace.note("output", answers[-1])
            if dut.m_axis_tlast_o.value:
                answers.pop()
        writes = 0 if dut.ntt_busy.value else int(unit.write_o.value)
        for m in range(3):
            if writes >> m & 1:
                trace.note(f"M{m}", "wiped" if int(unit.wiped.value) >> m & 1 else "written")
        trace.cycle += 1
        await RisingEdge(dut.clk_i)
