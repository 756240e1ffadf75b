"""Two key switches with one key: two results in the time of one, whatever the ports do."""

from typing import Any

import axi
import cocotb
import pytest
from cocotb.triggers import FallingEdge
from fixtures import Simulate
from key_switch_bench import CONTROL, DONE, ERROR, Bench, Frame, run
from key_switch_schedule import Shape
from key_switching import random_switch

CORE_1 = 0x80


@cocotb.test()
async def switches_in_pairs(dut: Any) -> None:
    """Two results every period, counted; a reset; pauses; a core waits for its partner's input."""
    bench = Bench(dut, cores=2)
    await bench.start()
    period = bench.schedule.period * bench.beats

    def pairs(count: int) -> list[dict[str, list[list[int]]]]:
        expected = []
        for _ in range(count):
            first = random_switch(bench.shape, bench.n)
            second = random_switch(bench.shape, bench.n, key=first.key)
            expected += [bench.queue(first), bench.queue(second, core=1)]
        return expected

    expected = pairs(2)
    await bench.finish(4)
    bench.compare(expected)
    assert bench.ends[3] - bench.ends[1] == period
    dut._log.info("two results every %d cycles", period)
    assert await axi.read(dut, DONE) == await axi.read(dut, CORE_1 | DONE) == (2, axi.OKAY)

    pairs(1)
    for _ in range(period // 2):
        await FallingEdge(dut.clk_i)
    bench.clear()
    assert await axi.write(dut, CONTROL, 3) == axi.OKAY
    for _ in range(5):
        await FallingEdge(dut.clk_i)
    bench.clear()

    expected = pairs(1)
    late, bench.queues["digit_1"] = bench.queues["digit_1"], []
    bench.rates = {"digit_0": 0.9, "key_a": 0.8, "addend_b_1": 0.9, "a_1": 0.7, "b_0": 0.9}
    for _ in range(2 * period):
        await FallingEdge(dut.clk_i)
    assert not any(bench.results.values())
    bench.queues["digit_1"] = late
    await bench.finish(2)
    bench.compare(expected)
    assert await axi.read(dut, ERROR) == await axi.read(dut, CORE_1 | ERROR) == (0, axi.OKAY)


@cocotb.test()
async def refuses_one_of_a_pair(dut: Any) -> None:
    """A fault in one core's input refuses that core's result; a key for another level refuses both."""
    bench = Bench(dut, cores=2)
    await bench.start()
    first = random_switch(bench.shape, bench.n)
    second = random_switch(bench.shape, bench.n, key=first.key)

    def bad_digit(name: str, i: int, frame: Frame) -> Frame:
        words, _, level = frame
        return (words[:3], 2, level) if (name, i) == ("digit", 1) else frame

    def bad_level(name: str, i: int, frame: Frame) -> Frame:
        words, last, level = frame
        return (words, last, level + 1) if (name, i) == ("key_a", 0) else frame

    bench.queue(first)
    bench.queue(second, bad_digit, core=1)
    await bench.finish(2)
    refused = {name: {user & 1 for _, user in results} for name, results in bench.results.items()}
    assert refused == {"a_0": {0}, "b_0": {0}, "a_1": {1}, "b_1": {1}}
    assert (await axi.read(dut, ERROR))[0] == 0
    assert (await axi.read(dut, CORE_1 | ERROR))[0] == 1 << 3
    bench.clear()
    bench.queue(first, bad_level)
    bench.queue(second, core=1)
    await bench.finish(2)
    assert all(user & 1 for results in bench.results.values() for _, user in results)
    assert (await axi.read(dut, ERROR))[0] == 1 << 5
    assert await axi.write(dut, ERROR, 0xFF) == axi.OKAY
    assert (await axi.read(dut, ERROR))[0] == (await axi.read(dut, CORE_1 | ERROR))[0] == 0


@pytest.mark.full
@pytest.mark.parametrize("only", ["switches_in_pairs", "refuses_one_of_a_pair"])
def test_key_switch_pair(simulate: Simulate, request: pytest.FixtureRequest, only: str) -> None:
    run(simulate, request, 8, Shape(3, 1, 2), only, top="key_switch_pair")
