"""What moves the streams of key_switch and key_switch_pair, and builds them."""

import json
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import axi
import cocotb
import pytest
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge, RisingEdge
from fixtures import BUILD, Simulate
from key_switch_package import primes, variant
from key_switch_schedule import Shape, chain_primes, search
from key_switching import Switch, streams
from pipe_twiddles import lines, log_lanes, tables

INPUTS = ("digit", "key_a", "key_b", "addend_a", "addend_b")
OUTPUTS = ("a", "b")
ID, CONTROL, STATUS, ERROR, DONE, CYCLES = 0x00, 0x08, 0x0C, 0x10, 0x14, 0x18
ERRORS = ("range_digit", "range_key", "range_addend", "short_frame", "missing_last", "key_level")

# A rate is the part of the cycles in which a port is ready; or an output is only where there is a beat.
SHY = -1.0

# A frame as it is sent: beats, index of the last flag (None: on none), level (keys).
Frame = tuple[list[int], int | None, int]


class Share:
    """What one core has of a port of a pair: its bits, read and written as those of a port are."""

    _written: ClassVar[dict[str, int]] = {}  # by port; writes take effect later than the next is made

    def __init__(self, port: Any, core: int) -> None:
        self.port, self.width = port, len(port) // 2
        self.shift = core * self.width

    @property
    def value(self) -> int:
        """This core's bits."""
        return int(self.port.value) >> self.shift & (1 << self.width) - 1

    @value.setter
    def value(self, value: int) -> None:
        mask = (1 << self.width) - 1 << self.shift
        whole = self._written.get(self.port._name, 0) & ~mask | int(value) << self.shift
        self._written[self.port._name] = self.port.value = whole


class Bench:
    """Queues of frames for the inputs, lists of frames from the outputs, moved by one loop."""

    def __init__(self, dut: Any, rates: dict[str, float] | None = None, cores: int = 1) -> None:
        self.dut, self.rates, self.cores = dut, rates or {}, cores
        # A pair's cores have streams of their own, the key's apart: `digit_0` is core 0's share of `digit`.
        suffixes = [""] if cores == 1 else [f"_{core}" for core in range(cores)]
        self.inputs = [name for name in INPUTS if name.startswith("key")]
        self.inputs += [name + end for end in suffixes for name in INPUTS if not name.startswith("key")]
        self.outputs = [name + end for end in suffixes for name in OUTPUTS]
        self.log_n = int(dut.LogN.value)
        self.n, self.lanes = 1 << self.log_n, 1 << log_lanes(self.log_n)
        self.beats = self.n // self.lanes
        level, alpha, gap, centred = map(int, os.environ["SHAPE"].split())
        self.shape = Shape(level, alpha, gap, bool(centred))
        self.schedule = search(self.shape)
        self.cycle = 0
        self.begun = dict.fromkeys(self.outputs, False)  # a frame on the wire whose last beat has not come
        self.clear()

    def port(self, side: str, name: str, signal: str) -> Any:
        """A signal of a stream, or a core's share of it."""
        base, _, core = name.rpartition("_")
        if core.isdigit():
            return Share(getattr(self.dut, f"{side}_{base}_{signal}"), int(core))
        return getattr(self.dut, f"{side}_{name}_{signal}")

    def clear(self) -> None:
        """Clears the queues of inputs and outputs."""
        self.queues: dict[str, list[Frame]] = {name: [] for name in self.inputs}
        self.at = dict.fromkeys(self.inputs, 0)
        self.results: dict[str, list[tuple[list[int], int]]] = {name: [] for name in self.outputs}
        self.open: dict[str, list[int]] = {name: [] for name in self.outputs}
        self.ends: list[int] = []
        # Of every frame on every port: cycles of its first and its last beat.
        self.trace: dict[str, list[list[int]]] = {name: [] for name in (*self.inputs, *self.outputs)}

    async def start(self) -> None:
        """Resets and enables."""
        dut = self.dut
        for name in self.inputs:
            self.port("s_axis", name, "tvalid_i").value = 0
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
        self, switch: Switch, change: Callable[[str, int, Frame], Frame] | None = None, core: int = 0
    ) -> dict[str, list[list[int]]]:
        """Queues a switch's frames, each possibly changed; the results to expect. The key is core 0's."""
        frames = streams(switch, self.schedule, self.lanes)
        end = "" if self.cores == 1 else f"_{core}"
        for name in INPUTS:
            if name.startswith("key") and core > 0:
                continue
            port = name if name.startswith("key") else name + end
            for i, words in enumerate(frames[name]):
                frame: Frame = (words, len(words) - 1, self.shape.level)
                self.queues[port].append(change(name, i, frame) if change else frame)
        return {name + end: frames[f"result_{name}"] for name in OUTPUTS}

    async def move(self) -> None:
        """Every cycle: offers, takes, and remembers. What is offered stays until it is taken."""
        dut = self.dut
        ports = {
            name: tuple(
                self.port("s_axis", name, signal) for signal in ("tvalid_i", "tready_o", "tdata_i", "tlast_i")
            )
            for name in self.inputs
        }
        outs = {
            name: tuple(
                self.port("m_axis", name, signal)
                for signal in ("tvalid_o", "tready_i", "tdata_o", "tlast_o", "tuser_o")
            )
            for name in self.outputs
        }
        offered = dict.fromkeys(self.inputs, False)
        ready = dict.fromkeys(self.outputs, None)
        # What an output offered and nobody took: it stays, whatever happens but a reset by the pin.
        waiting: dict[str, tuple[int, ...] | None] = dict.fromkeys(self.outputs, None)
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
            for name, (valid, taker, *_) in outs.items():
                rate = self.rates.get(name, 1)
                now = int(valid.value) if rate == SHY else int(random.random() < rate)
                if now != ready[name]:
                    taker.value = ready[name] = now
            await RisingEdge(dut.clk_i)
            self.cycle += 1
            taken = [name for name in self.inputs if offered[name] and ports[name][1].value]
            for name, (valid, _, data, last, user) in outs.items():
                shown = (int(data.value), int(last.value), int(user.value)) if valid.value else None
                if not dut.rst_ni.value:
                    waiting[name], self.begun[name] = None, False
                    continue
                assert waiting[name] in (None, shown), f"{name} withdraws a beat"
                waiting[name] = None if ready[name] else shown
                if ready[name] and valid.value:
                    self.begun[name] = not last.value
                    self.seen(name, not self.open[name])
                    self.open[name].append(int(data.value))
                    if last.value:
                        self.results[name].append((self.open[name], int(user.value)))
                        self.open[name] = []
                        if sum(map(len, self.results.values())) % (2 * self.shape.limbs) == 0:
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

    def save(self, path: str) -> None:
        """What passed the ports, for doc/draw_timing.py."""
        trace = {
            "log_n": self.log_n, "level": self.shape.level, "alpha": self.shape.alpha,
            "slots": self.schedule.period, "ports": self.trace,
        }  # fmt: skip
        Path(path).write_text(json.dumps(trace), encoding="ascii")

    async def finish(self, switches: int, limit: int = 40) -> None:
        """Waits for the results of that many switches, at most `limit` polynomials' times for each."""
        deadline = self.cycle + limit * self.beats * switches
        while sum(map(len, self.results.values())) < 2 * self.shape.limbs * switches:
            for _ in range(200):
                await FallingEdge(self.dut.clk_i)
            assert self.cycle < deadline, "the core hangs"

    def compare(self, expected: list[dict[str, list[list[int]]]]) -> None:
        """Every result word for word, in order, none refused."""
        for name in self.outputs:
            frames = [frame for one in expected for frame in one.get(name, [])]
            assert len(self.results[name]) == len(frames)
            for (words, user), frame in zip(self.results[name], frames, strict=True):
                assert user & 1 == 0
                assert words == frame, f"port {name}, prime and half {user >> 1}"


def run(
    simulate: Simulate,
    request: pytest.FixtureRequest,
    log_n: int,
    shape: Shape,
    only: str,
    top: str = "key_switch",
    from_memory: bool = False,
    products: bool = True,
    **env: str,
) -> None:
    """Makes the package and the tables of a shape, builds the module and runs one test in it.

    `from_memory`: twiddle factors are not made, but stored. `products`: not the tiles that are synthesised.
    """
    folder = BUILD / "results" / request.node.name
    folder.mkdir(parents=True, exist_ok=True)
    package = None
    if shape != Shape(3):
        name = f"L{shape.level}-alpha{shape.alpha}-gap{shape.gap}"
        place = BUILD / "packages" / (name if shape.centred else f"{name}-plain")
        place.mkdir(parents=True, exist_ok=True)
        package = variant(place, shape)
    for chain, (name, width) in enumerate([("a", 60), ("b", 51)]):
        q = [primes(shape)[p].value for p in chain_primes(search(shape), chain)]
        write = lines if from_memory else tables
        write(folder / f"tables-{name}", q, log_n, width)
    env["SHAPE"] = f"{shape.level} {shape.alpha} {shape.gap} {shape.centred:d}"
    parameters = {"LogN": log_n, "FromMemory": 1} if from_memory else {"LogN": log_n}
    simulate(top, parameters, env, only=only, products=products, package=package)
