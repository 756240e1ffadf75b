"""The key switch against the Rust engine and its definition: pauses, resets, bad input, one after another."""

import json
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import axi
import cocotb
import pytest
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge, RisingEdge
from conftest import BUILD, Simulate
from key_switch_package import chain_primes, primes, search
from key_switching import Switch, random_switch, streams, switch_from
from pipe_twiddles import tables

DIGITS = 4
INPUTS = ("digit", "key_a", "key_b", "addend_a", "addend_b")
OUTPUTS = ("a", "b")
ID, CONTROL, STATUS, ERROR, DONE, CYCLES = 0x00, 0x08, 0x0C, 0x10, 0x14, 0x18
ERRORS = ("range_digit", "range_key", "range_addend", "short_frame", "missing_last", "key_level")

# A frame as it is sent: beats, index of the last flag (None: on none), level (keys).
Frame = tuple[list[int], int | None, int]


class Bench:
    """Queues of frames for the inputs, lists of frames from the outputs, moved by one loop."""

    def __init__(self, dut: Any, rates: dict[str, float] | None = None) -> None:
        self.dut, self.rates = dut, rates or {}
        self.lanes = 1 << int(dut.LogLanes.value)
        self.beats = self.lanes**3
        self.schedule = search(DIGITS)
        self.cycle = 0
        self.clear()

    def clear(self) -> None:
        """Forgets what was to be sent and what came."""
        self.queues: dict[str, list[Frame]] = {name: [] for name in INPUTS}
        self.at = dict.fromkeys(INPUTS, 0)
        self.results: dict[str, list[tuple[list[int], int]]] = {name: [] for name in OUTPUTS}
        self.open: dict[str, list[int]] = {name: [] for name in OUTPUTS}
        self.ends: list[int] = []
        # Of every frame on every port: cycles of its first and its last beat.
        self.trace: dict[str, list[list[int]]] = {name: [] for name in (*INPUTS, *OUTPUTS)}

    async def start(self) -> None:
        """Resets and enables."""
        dut = self.dut
        for name in INPUTS:
            getattr(dut, f"s_axis_{name}_tvalid_i").value = 0
        for name in ("awvalid", "wvalid", "bready", "arvalid", "rready"):
            getattr(dut, f"s_axil_{name}_i").value = 0
        dut.rst_ni.value = 0
        Clock(dut.clk_i, 2, unit="step").start()
        for _ in range(3):
            await FallingEdge(dut.clk_i)
        dut.rst_ni.value = 1
        cocotb.start_soon(self.move())
        assert await axi.write(dut, CONTROL, 1) == axi.OKAY

    def queue(
        self, switch: Switch, change: Callable[[str, int, Frame], Frame] | None = None
    ) -> dict[str, list]:
        """Queues the frames of a switch, each possibly changed; the results to expect."""
        frames = streams(switch, self.schedule, self.lanes)
        for name in INPUTS:
            for i, words in enumerate(frames[name]):
                frame: Frame = (words, len(words) - 1, DIGITS - 1)
                self.queues[name].append(change(name, i, frame) if change else frame)
        return {name: frames[f"result_{name}"] for name in OUTPUTS}

    async def move(self) -> None:
        """Every cycle: offers, takes, and remembers. What is offered stays until it is taken."""
        dut = self.dut
        ports = {
            name: tuple(
                getattr(dut, f"s_axis_{name}_{signal}")
                for signal in ("tvalid_i", "tready_o", "tdata_i", "tlast_i")
            )
            for name in INPUTS
        }
        outs = {
            name: tuple(
                getattr(dut, f"m_axis_{name}_{signal}")
                for signal in ("tvalid_o", "tready_i", "tdata_o", "tlast_o", "tuser_o")
            )
            for name in OUTPUTS
        }
        offered = dict.fromkeys(INPUTS, False)
        ready = dict.fromkeys(OUTPUTS, None)
        while True:
            for name, (valid, _, data, last) in ports.items():
                if self.queues[name] and not offered[name] and random.random() < self.rates.get(name, 1):
                    words, flag, level = self.queues[name][0]
                    data.value, last.value, valid.value = words[self.at[name]], int(self.at[name] == flag), 1
                    if name.startswith("key"):
                        getattr(dut, f"s_axis_{name}_tuser_i").value = level
                    offered[name] = True
                elif not self.queues[name] and offered[name]:
                    valid.value, offered[name] = 0, False
            for name, (_, taker, *_) in outs.items():
                now = int(random.random() < self.rates.get(name, 1))
                if now != ready[name]:
                    taker.value = ready[name] = now
            await RisingEdge(dut.clk_i)
            self.cycle += 1
            taken = [name for name in INPUTS if offered[name] and ports[name][1].value]
            for name, (valid, _, data, last, user) in outs.items():
                if ready[name] and valid.value:
                    self.seen(name, not self.open[name])
                    self.open[name].append(int(data.value))
                    if last.value:
                        self.results[name].append((self.open[name], int(user.value)))
                        self.open[name] = []
                        if sum(map(len, self.results.values())) % (2 * DIGITS) == 0:
                            self.ends.append(self.cycle)
            await FallingEdge(dut.clk_i)
            for name in taken:
                offered[name] = False
                self.seen(name, self.at[name] == 0)
                if self.queues[name]:
                    self.at[name] += 1
                    if self.at[name] == len(self.queues[name][0][0]):
                        self.at[name] = 0
                        self.queues[name].pop(0)
                ports[name][0].value = 0

    def seen(self, name: str, first: bool) -> None:
        """A beat passed a port."""
        if first:
            self.trace[name].append([self.cycle, self.cycle])
        elif self.trace[name]:
            self.trace[name][-1][1] = self.cycle

    async def finish(self, switches: int, limit: int = 40) -> None:
        """Waits for the results of that many switches, at most `limit` polynomials' times for each."""
        deadline = self.cycle + limit * self.beats * switches
        while sum(map(len, self.results.values())) < 2 * DIGITS * switches:
            for _ in range(200):
                await FallingEdge(self.dut.clk_i)
            assert self.cycle < deadline, "the core hangs"

    def compare(self, expected: list[dict[str, list]]) -> None:
        """Every result word for word, in order, none refused."""
        for name in OUTPUTS:
            frames = [frame for one in expected for frame in one[name]]
            assert len(self.results[name]) == len(frames)
            for (words, user), frame in zip(self.results[name], frames, strict=True):
                assert user & 1 == 0
                assert words == frame, f"port {name}, prime and half {user >> 1}"


@cocotb.test()
async def switches_one_after_another(dut) -> None:
    """Random words and corner values; a result every period of the schedule, counted."""
    bench = Bench(dut)
    await bench.start()
    n = bench.lanes**4
    expected = [bench.queue(random_switch(DIGITS, n, corner)) for corner in ("", "top", "equal")]
    await bench.finish(len(expected))
    bench.compare(expected)
    period = bench.schedule.period * bench.beats
    assert [b - a for a, b in zip(bench.ends, bench.ends[1:], strict=False)] == [period] * (len(expected) - 1)
    assert await axi.read(dut, DONE) == (len(expected), axi.OKAY)
    assert await axi.read(dut, CYCLES) == (period, axi.OKAY)
    dut._log.info("cycles between results: %d", period)
    trace = {"log_n": 4 * int(dut.LogLanes.value), "slots": bench.schedule.period, "ports": bench.trace}
    Path("trace.json").write_text(json.dumps(trace), encoding="ascii")


@cocotb.test()
async def waits_for_every_port(dut) -> None:
    """Each port pauses for a switch's length of its own, and all of them a little."""
    bench = Bench(dut, dict.fromkeys((*INPUTS, *OUTPUTS), 0.9))
    await bench.start()
    n = bench.lanes**4
    expected = [bench.queue(random_switch(DIGITS, n, corner)) for corner in ("zero", "")]
    for slow in (*INPUTS, *OUTPUTS):
        bench.rates = {name: 0.3 if name == slow else 0.95 for name in (*INPUTS, *OUTPUTS)}
        for _ in range(5 * bench.beats):
            await FallingEdge(dut.clk_i)
    bench.rates = {}
    await bench.finish(len(expected))
    bench.compare(expected)
    assert await axi.read(dut, ERROR) == (0, axi.OKAY)


@cocotb.test()
async def forgets_everything_at_a_reset(dut) -> None:
    """At any cycle, by pin or register: what follows is as after the first one."""
    bench = Bench(dut)
    await bench.start()
    n = bench.lanes**4
    switch = random_switch(DIGITS, n)
    for cut in (0.01, 0.6, 1.2):
        bench.queue(switch)
        bench.queue(switch)
        for _ in range(int(cut * bench.schedule.period * bench.beats) + random.randrange(bench.beats)):
            await FallingEdge(dut.clk_i)
        bench.clear()
        if random.getrandbits(1):
            dut.rst_ni.value = 0
            await FallingEdge(dut.clk_i)
            dut.rst_ni.value = 1
            await axi.write(dut, CONTROL, 1)
        else:
            await axi.write(dut, CONTROL, 3)
        for _ in range(5):
            await FallingEdge(dut.clk_i)
        bench.clear()
    expected = [bench.queue(switch), bench.queue(switch)]
    await bench.finish(2)
    bench.compare(expected)


def fault(kind: str) -> Callable[[str, int, Frame], Frame]:
    """Spoils one frame."""

    def change(name: str, i: int, frame: Frame) -> Frame:
        words, last, level = frame
        where = random.randrange(len(words) - 1)
        port = {"range_key": "key_b", "range_addend": "addend_a", "key_level": "key_a"}.get(kind, "digit")
        if name != port or i != 1:
            return frame
        if kind.startswith("range"):
            # The prime itself: the least that is not a residue.
            bad = list(words)
            bad[where] |= ((1 << 60) - 1) << 64
            return bad, last, level
        if kind == "short_frame":
            return words[: where + 1], where, level
        if kind == "missing_last":
            return [*words, *words[:3]], len(words) + 2, level
        return words, last, level - 1

    return change


@cocotb.test()
async def refuses_what_is_wrong(dut) -> None:
    """Each fault sets its sticky bit, refuses that switch's results alone, and stops nothing."""
    bench = Bench(dut)
    await bench.start()
    n = bench.lanes**4
    switch = random_switch(DIGITS, n)
    # In this order, so that each is seen before the next one can be.
    kinds = [
        "range_digit",
        "short_frame",
        "",
        "missing_last",
        "range_key",
        "",
        "key_level",
        "range_addend",
        "",
    ]
    expected = [bench.queue(switch, fault(kind) if kind else None) for kind in kinds][-1]
    seen: list[str] = []

    async def watch() -> None:
        while len(seen) < len(ERRORS):
            value, _ = await axi.read(dut, ERROR)
            seen.extend(kind for bit, kind in enumerate(ERRORS) if value >> bit & 1 and kind not in seen)
            for _ in range(300):
                await FallingEdge(dut.clk_i)

    watching = cocotb.start_soon(watch())
    await bench.finish(len(kinds))
    for name in OUTPUTS:
        each = len(bench.results[name]) // len(kinds)
        for i, kind in enumerate(kinds):
            results = bench.results[name][i * each : (i + 1) * each]
            refused = [user & 1 for _, user in results]
            if kind == "":
                assert [words for words, _ in results] == expected[name]
                assert not any(refused)
            elif kind == "range_addend":
                # The fault comes with the result: its port's second addend, and what is ended later.
                assert any(refused) or name == "b"
            else:
                assert all(refused)
                assert not any(word for words, _ in results for word in words)
    await watching
    assert seen == [kind for kind in kinds if kind]
    everything = (1 << len(ERRORS)) - 1
    assert await axi.read(dut, ERROR) == (everything, axi.OKAY)
    assert await axi.write(dut, ERROR, 1) == axi.OKAY
    assert await axi.read(dut, ERROR) == (everything - 1, axi.OKAY)
    assert await axi.write(dut, ERROR, everything) == axi.OKAY
    assert await axi.read(dut, ERROR) == (0, axi.OKAY)
    assert (await axi.read(dut, 0x40))[1] == (await axi.write(dut, ID, 0)) == axi.SLVERR


@cocotb.test()
async def matches_the_rust_engine(dut) -> None:
    """A relinearisation that the engine made, twice; the result goes back for decryption."""
    folder = Path(os.environ["VECTORS"])
    bench = Bench(dut)
    await bench.start()
    switch = switch_from(folder, DIGITS, bench.lanes**4)
    expected = [bench.queue(switch), bench.queue(switch)]
    await bench.finish(2)
    bench.compare(expected)
    period = bench.schedule.period * bench.beats
    assert bench.ends[1] - bench.ends[0] == period
    dut._log.info("N = %d: %d cycles between results", bench.lanes**4, period)
    for name in OUTPUTS:
        for words, user in bench.results[name][: len(bench.results[name]) // 2]:
            data = b"".join(word.to_bytes(8 * bench.lanes, "little") for word in words)
            (folder / f"hardware_{user >> 1 & 1}_{user >> 2}.words").write_bytes(data)


def run(simulate: Simulate, request: pytest.FixtureRequest, log_lanes: int, only: str, **env: str) -> None:
    folder = BUILD / "results" / request.node.name
    folder.mkdir(parents=True, exist_ok=True)
    schedule = search(DIGITS)
    for chain, (name, width) in enumerate([("a", 60), ("b", 51)]):
        q = [primes(DIGITS)[p].value for p in chain_primes(DIGITS, schedule, chain)]
        tables(folder / f"tables-{name}", q, log_lanes, width)
    simulate("key_switch", {"LogLanes": log_lanes}, env, only=only, products=True)


@pytest.mark.parametrize(
    "only",
    [
        "switches_one_after_another",
        "waits_for_every_port",
        "forgets_everything_at_a_reset",
        "refuses_what_is_wrong",
    ],
)
def test_key_switch(simulate: Simulate, request: pytest.FixtureRequest, only: str) -> None:
    run(simulate, request, 3, only)


@pytest.mark.parametrize("log_n", [12, pytest.param(16, marks=pytest.mark.full)])
def test_key_switch_engine(simulate, vectors, check_vectors, request, log_n: int) -> None:
    folder = vectors("key-switch", log_n)
    run(simulate, request, log_n // 4, "matches_the_rust_engine", VECTORS=str(folder))
    check_vectors("key-switch", log_n)
