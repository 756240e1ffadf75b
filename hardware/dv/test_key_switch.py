"""The key switch against the Rust engine and its definition: pauses, resets, bad input, one after another."""

import dataclasses
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import axi
import cocotb
import pytest
from cocotb.triggers import FallingEdge
from fixtures import CheckVectors, Simulate, Vectors
from key_switch_bench import (
    CONTROL,
    CYCLES,
    DONE,
    ERROR,
    ERRORS,
    ID,
    INPUTS,
    OUTPUTS,
    SHY,
    STATUS,
    Bench,
    Frame,
    run,
)
from key_switch_schedule import Shape, result_order
from key_switching import Switch, random_switch, switch_from, switched
from seal_switch import LOG_NS, SHAPE, seal_switch
from transforms import latency, lead


@cocotb.test()
async def switches_one_after_another(dut: Any) -> None:
    """Random words and corner values; a result every period of the schedule, counted."""
    bench = Bench(dut)
    await bench.start()
    expected = [bench.queue(random_switch(bench.shape, bench.n, corner)) for corner in ("", "top", "equal")]
    await bench.finish(len(expected))
    bench.compare(expected)
    period = bench.schedule.period * bench.beats
    assert [b - a for a, b in zip(bench.ends, bench.ends[1:], strict=False)] == [period] * (len(expected) - 1)
    assert await axi.read(dut, DONE) == (len(expected), axi.OKAY)
    assert await axi.read(dut, CYCLES) == (period, axi.OKAY)
    dut._log.info("cycles between results: %d", period)


@cocotb.test()
async def waits_for_every_port(dut: Any) -> None:
    """Each port in turn is slow while others are not; outputs wait for a beat; all are a little slow."""
    bench = Bench(dut)
    await bench.start()
    expected = [bench.queue(random_switch(bench.shape, bench.n, corner)) for corner in ("zero", "", "")]
    for slow in (*INPUTS, *OUTPUTS):
        bench.rates = {slow: 0.3}
        for _ in range(5 * bench.beats):
            await FallingEdge(dut.clk_i)
    # For so long that a key runs empty at the last beat of a polynomial, behind which none is needed.
    bench.rates = dict.fromkeys(("key_a", "key_b"), 0.3)
    for _ in range(2 * bench.schedule.period * bench.beats):
        await FallingEdge(dut.clk_i)
    bench.rates = dict.fromkeys(OUTPUTS, SHY)
    for _ in range(5 * bench.beats):
        await FallingEdge(dut.clk_i)
    # While a port that is needed gives nothing, everything waits, and says so.
    bench.rates = {"key_a": 0.0}
    for _ in range(bench.schedule.period * bench.beats):
        await FallingEdge(dut.clk_i)
    assert await axi.read(dut, STATUS) == (3, axi.OKAY)
    bench.rates = dict.fromkeys((*INPUTS, *OUTPUTS), 0.9)
    await bench.finish(len(expected))
    bench.compare(expected)
    assert await axi.read(dut, ERROR) == (0, axi.OKAY)
    # Without the enable bit the next switch does not begin, and its inputs wait: it begins after the last
    # one.
    bench.rates, frame = {}, bench.schedule.period * bench.beats
    expected += [bench.queue(random_switch(bench.shape, bench.n, corner)) for corner in ("equal", "top")]
    for enable, cycles in [(1, 3 * frame // 2), (0, frame), (1, 0)]:
        await axi.write(dut, CONTROL, enable)
        for _ in range(cycles):
            await FallingEdge(dut.clk_i)
    assert (await axi.read(dut, DONE))[0] < len(expected)
    await bench.finish(len(expected))
    bench.compare(expected)
    assert await axi.read(dut, DONE) == (len(expected), axi.OKAY)


PLACES = 4  # of a port


async def cut(bench: Bench, switches: list[Switch], cycles: int, by_pin: bool) -> None:
    """Begins some switches and resets after that many cycles."""
    for switch in switches:
        bench.queue(switch)
    for _ in range(cycles):
        await FallingEdge(bench.dut.clk_i)
    bench.clear()
    if by_pin:
        bench.dut.rst_ni.value = 0
        await FallingEdge(bench.dut.clk_i)
        bench.dut.rst_ni.value = 1
        await axi.write(bench.dut, CONTROL, 1)
    else:
        await axi.write(bench.dut, CONTROL, 3)
    for _ in range(5):
        await FallingEdge(bench.dut.clk_i)
    # A slow receiver takes the end of its frame later.
    bench.rates = {}
    for _ in range(5):
        await FallingEdge(bench.dut.clk_i)
    assert not any(bench.begun.values()), "a reset leaves a frame open"
    bench.clear()


@cocotb.test()
async def forgets_everything_at_a_reset(dut: Any) -> None:
    """Before, in and between frames, and while a port waits; what follows is as after the first reset."""
    bench = Bench(dut)
    await bench.start()
    switch = random_switch(bench.shape, bench.n)
    frame = bench.schedule.period * bench.beats
    pins = [True, False] * 3
    random.shuffle(pins)
    for pin, (count, where) in zip(
        pins, [(0, 0.05), (2, 0.3), (2, 0.7), (2, 1.4), (1, 1.6), (1, 0.4)], strict=True
    ):
        bench.rates = {"key_a": 0.02} if (count, where) == (1, 0.4) else {}
        await cut(bench, [switch] * count, int(where * frame) + random.randrange(bench.beats), pin)
    # By the register, in a frame of each port of results that its receiver has begun.
    for name in OUTPUTS:
        bench.rates = dict.fromkeys(OUTPUTS, 0.5)
        bench.queue(switch)
        while not bench.begun[name]:
            await FallingEdge(dut.clk_i)
        await cut(bench, [], 5, by_pin=False)
    bench.rates = {}
    expected = [bench.queue(switch), bench.queue(switch)]
    await bench.finish(2)
    bench.compare(expected)


@cocotb.test()
async def forgets_everything_in_every_slot(dut: Any) -> None:
    """A reset in every slot of a switch's two frames, by pin and register in turn, while some port waits."""
    bench = Bench(dut)
    await bench.start()
    switch = random_switch(bench.shape, bench.n)
    for slot in range(2 * bench.schedule.period):
        where = slot * bench.beats + random.randrange(bench.beats)
        # Receivers that are slow, or an input that is.
        bench.rates = random.choice([{}, dict.fromkeys(OUTPUTS, 0.3), {"addend_a": 0.3, "addend_b": 0.3}])
        await cut(bench, [switch] * random.choice([1, 2]), where, slot % 2 == 0)
    expected = [bench.queue(switch)]
    await bench.finish(1)
    bench.compare(expected)


@cocotb.test()
async def matches_seal(dut: Any) -> None:
    """A relinearization of SEAL's, twice: digits are not centred."""
    bench = Bench(dut)
    await bench.start()
    switch = seal_switch(bench.log_n)
    expected = [bench.queue(switch), bench.queue(switch)]
    await bench.finish(len(expected))
    bench.compare(expected)


def fault(kind: str, port: str, level: int) -> Callable[[str, int, Frame], Frame]:
    """Spoils the second frame of a port."""

    def change(name: str, i: int, frame: Frame) -> Frame:
        words, last, of = frame
        if name != port or i != 1:
            return frame
        where = random.randrange(len(words) - 1)
        if kind == "range":
            # The last lane's word, all ones in its 60 bits.
            bad = list(words)
            bad[where] |= ((1 << 60) - 1) << max(words).bit_length() // 64 * 64
            return bad, last, of
        if kind == "short_frame":
            return words[: where + 1], where, of
        if kind == "missing_last":
            return [*words, *words[:3]], len(words) + 2, of
        assert kind == "key_level"
        return words, last, level

    return change


def bit(kind: str, port: str) -> int:
    """The bit of ERROR that a fault of a port sets."""
    return ERRORS.index(f"range_{port.partition('_')[0]}" if kind == "range" else kind)


async def refuse(dut: Any, faults: list[tuple[str, str]]) -> None:
    """One faulty switch after another, a good one after every third, and two good ones at the end.

    Each fault sets its sticky bit and no other one, refuses that switch's results alone, and stops nothing.
    """
    bench = Bench(dut)
    await bench.start()
    switch = random_switch(bench.shape, bench.n)
    level = bench.shape.level
    plan: list[tuple[str, str] | None] = []
    for i, each_fault in enumerate(faults, 1):
        plan += [each_fault, None] if i % 3 == 0 else [each_fault]
    plan += [None, None]
    good: dict[str, list[list[int]]] = {}
    for one in plan:
        good = bench.queue(switch, fault(*one, random.choice([level - 1, level + 1])) if one else None)
    await bench.finish(len(plan))
    value, _ = await axi.read(dut, ERROR)
    assert value == sum({1 << bit(*each_fault) for each_fault in faults})
    for name in OUTPUTS:
        each = len(bench.results[name]) // len(plan)
        for i, one in enumerate(plan):
            results = bench.results[name][i * each : (i + 1) * each]
            refused = [user & 1 for _, user in results]
            if one is None:
                assert [words for words, _ in results] == good[name]
                assert not any(refused)
            elif one[1] == f"addend_{name}":
                # The fault comes with the second result: the one before has left.
                assert refused == [0] + [1] * (each - 1)
                assert results[0][0] == good[name][0]
            elif one[1].startswith("addend"):
                # What the other chain gives later.
                assert refused == sorted(refused)
            else:
                assert all(refused)
                assert not any(word for words, _ in results for word in words)
    # Sticky: a bit goes when a one is written to it.
    for i in range(len(ERRORS)):
        assert await axi.read(dut, ERROR) == (value, axi.OKAY)
        assert await axi.write(dut, ERROR, 1 << i) == axi.OKAY
        value &= ~(1 << i)
    assert await axi.read(dut, ERROR) == (0, axi.OKAY)
    assert (await axi.read(dut, 0x40))[1] == (await axi.write(dut, ID, 0)) == axi.SLVERR


@cocotb.test()
async def refuses_what_is_wrong(dut: Any) -> None:
    """Every kind of fault, each on some port."""
    await refuse(
        dut,
        [
            ("range", "digit"),
            ("short_frame", "addend_b"),
            ("missing_last", "digit"),
            ("range", "key_b"),
            ("key_level", "key_a"),
            ("range", "addend_a"),
        ],
    )


@cocotb.test()
async def throws_away_the_rest(dut: Any) -> None:
    """The last digit of a switch goes on beyond its frame's end: no switch begins with the rest of it.

    The results come, refused, though nothing follows.
    """
    bench = Bench(dut)
    await bench.start()
    switch = random_switch(bench.shape, bench.n)
    rest = bench.schedule.period * bench.beats

    def overlong(name: str, i: int, frame: Frame) -> Frame:
        words, _, level = frame
        if (name, i) != ("digit", bench.shape.level):
            return frame
        return words + words[:1] * rest, len(words) - 1 + rest, level

    bench.queue(switch, overlong)
    await bench.finish(1)
    assert all(user & 1 for results in bench.results.values() for _, user in results)
    for _ in range(2 * rest):
        await FallingEdge(dut.clk_i)
    assert await axi.read(dut, STATUS) == (0, axi.OKAY)
    assert await axi.read(dut, ERROR) == (1 << ERRORS.index("missing_last"), axi.OKAY)
    bench.clear()
    expected = [bench.queue(switch)]
    await bench.finish(1)
    bench.compare(expected)


@cocotb.test()
async def refuses_every_fault_on_every_port(dut: Any) -> None:
    """Ranges, short and overlong frames on all inputs, levels on both keys."""
    kinds = [(kind, port) for kind in ("range", "short_frame", "missing_last") for port in INPUTS]
    await refuse(dut, [*kinds, ("key_level", "key_a"), ("key_level", "key_b")])


@cocotb.test()
async def matches_the_rust_engine(dut: Any) -> None:
    """A relinearization that the engine made, twice, at the cycles that doc/key_switch.md computes.

    The result goes back for decryption.
    """
    folder = Path(os.environ["VECTORS"])
    bench = Bench(dut)
    await bench.start()
    switch = switch_from(folder, bench.shape, bench.n)
    expected = [bench.queue(switch), bench.queue(switch)]
    await bench.finish(2)
    bench.compare(expected)
    period = bench.schedule.period * bench.beats
    assert bench.ends[1] - bench.ends[0] == period
    dut._log.info("N = %d: %d cycles between results", bench.n, period)
    bench.save("trace.json")
    first = min(slot for (kind, _, _), slot in bench.schedule.slot.items() if kind == "I")
    conversion = 4 if bench.shape.alpha == 1 else 11 + bench.shape.alpha
    # The port is four beats ahead of the pipeline, which takes the digit's last beat four cycles after it.
    taken = bench.trace["digit"][0][1] - (bench.beats - 1) + PLACES - 1
    frame = taken - first * bench.beats - (lead(bench.log_n) - 1 - conversion)
    for c, name in enumerate(OUTPUTS):
        begun = [
            slot * bench.beats + latency(bench.log_n) + 11 for slot, _, _ in result_order(bench.schedule, c)
        ]
        seen = [cycle - frame for cycle, _ in bench.trace[name]]
        assert seen == begun + [cycle + period for cycle in begun]
    for name in OUTPUTS:
        for words, user in bench.results[name][: len(bench.results[name]) // 2]:
            data = b"".join(word.to_bytes(8 * bench.lanes, "little") for word in words)
            (folder / f"hardware_{user >> 1 & 1}_{user >> 2}.words").write_bytes(data)


# First the two models, then what needs no other: a process that has to wait for a model does nothing.
@pytest.mark.parametrize(
    ("log_n", "level", "alpha"),
    [
        (10, 3, 1),
        *(
            pytest.param(12, level, alpha, marks=pytest.mark.full)
            for level, alpha in [(1, 1), (2, 1), (4, 1), (2, 2), (3, 2), (4, 2)]
        ),
        *(pytest.param(log_n, 3, 1, marks=pytest.mark.full) for log_n in (11, 12, 13, 14, 15, 16)),
    ],
)
def test_key_switch_engine(
    simulate: Simulate,
    vectors: Vectors,
    check_vectors: CheckVectors,
    request: pytest.FixtureRequest,
    log_n: int,
    level: int,
    alpha: int,
) -> None:
    folder = vectors("key-switch", log_n, level, alpha)
    run(simulate, request, log_n, Shape(level, alpha), "matches_the_rust_engine", VECTORS=str(folder))
    check_vectors("key-switch", log_n, level, alpha)


@pytest.mark.parametrize(
    "only",
    [
        "switches_one_after_another",
        "waits_for_every_port",
        "forgets_everything_at_a_reset",
        pytest.param("forgets_everything_in_every_slot", marks=pytest.mark.full),
        "refuses_what_is_wrong",
        "throws_away_the_rest",
        pytest.param("refuses_every_fault_on_every_port", marks=pytest.mark.full),
    ],
)
def test_key_switch(simulate: Simulate, request: pytest.FixtureRequest, only: str) -> None:
    run(simulate, request, 8, Shape(3, 1, 2), only)


@pytest.mark.full
@pytest.mark.parametrize(("level", "alpha"), [(1, 1), (2, 1), (4, 1), (5, 1), (2, 2), (3, 2), (4, 2)])
def test_key_switch_shapes(
    simulate: Simulate, request: pytest.FixtureRequest, level: int, alpha: int
) -> None:
    run(simulate, request, 8, Shape(level, alpha, 2), "switches_one_after_another")


@pytest.mark.full
def test_key_switch_as_synthesised(simulate: Simulate, request: pytest.FixtureRequest) -> None:
    """With the multiplier of tiles that is synthesised; other runs take the simulator's product."""
    run(simulate, request, 8, Shape(3, 1, 2), "switches_one_after_another", products=False)


@pytest.mark.full
def test_key_switch_matches_seal(simulate: Simulate, request: pytest.FixtureRequest) -> None:
    run(simulate, request, LOG_NS[0], SHAPE, "matches_seal")


@pytest.mark.parametrize("log_n", LOG_NS)
def test_definition_is_seals(log_n: int) -> None:
    """SEAL's checksums (asserted), and not the results of centred digits."""
    switch = seal_switch(log_n)
    centred = dataclasses.replace(SHAPE, centred=True)
    assert switched(centred, switch.inputs, switch.key, switch.addend) != switch.expected


@pytest.mark.parametrize(("level", "alpha"), [(1, 1), (2, 1), (3, 1), (4, 1), (2, 2), (3, 2), (4, 2)])
def test_definition_is_the_engines(vectors: Callable[..., Path], level: int, alpha: int) -> None:
    shape = Shape(level, alpha)
    switch = switch_from(vectors("key-switch", 10, level, alpha), shape, 1 << 10)
    assert switched(shape, switch.inputs, switch.key, switch.addend) == switch.expected


@pytest.mark.full
def test_key_switch_from_memory(simulate: Simulate, request: pytest.FixtureRequest) -> None:
    """With stored twiddle factors, the same words after as many cycles."""
    run(simulate, request, 8, Shape(3, 1, 2), "switches_one_after_another", from_memory=True)


@pytest.mark.full
@pytest.mark.parametrize("log_n", [10, 12])
def test_key_switch_from_memory_matches_the_engine(
    simulate: Simulate, vectors: Vectors, request: pytest.FixtureRequest, log_n: int
) -> None:
    folder = vectors("key-switch", log_n, 3, 1)
    run(simulate, request, log_n, Shape(3), "matches_the_rust_engine", from_memory=True, VECTORS=str(folder))
