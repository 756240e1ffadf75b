"""Samplers against their definitions in vectors/, which share nothing with the Rust sources."""

import random
from bisect import bisect_right
from typing import Any

import cocotb
import pytest
from chacha import block
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge, RisingEdge, Timer
from expander import residue
from fixtures import Simulate
from gaussian import cumulative

PRIME = (1 << 60) - (1 << 18) + 1
# Just above a power of two: nearly half of the candidates are rejected, and nearly half of those again.
UNLUCKY = (1 << 49) + 21


def words(key: bytes, first: int, count: int) -> list[int]:
    """64-bit words of ChaCha20 from a block on."""
    stream: list[int] = []
    for number in range(first, first + -(-count // 8)):
        output = block(key, [number, 0, 0, 0], 20)
        stream += [low | high << 32 for low, high in zip(output[::2], output[1::2], strict=True)]
    return stream[:count]


async def collect(dut: Any, index: int, port: Any, count: int, ready: float) -> list[int]:
    taken: list[int] = []
    while len(taken) < count:
        await FallingEdge(dut.clk_i)
        dut.ready_i[index].value = int(random.random() < ready)
        await RisingEdge(dut.clk_i)
        if dut.valid_o[index].value and dut.ready_i[index].value:
            taken.append(int(port.value))
    await FallingEdge(dut.clk_i)
    dut.ready_i[index].value = 0
    return taken


@cocotb.test()
async def match_their_definitions(dut: Any) -> None:
    dut.rst_ni.value, dut.start_i.value, dut.ready_i.value = 0, 0, 0
    await Timer(1, unit="step")  # registers start with random bits: no edge before the reset
    Clock(dut.clk_i, 2, unit="step").start()
    for _ in range(3):
        await FallingEdge(dut.clk_i)
    dut.rst_ni.value = 1
    modulus, table = int(dut.Modulus.value), cumulative("3.19", 63)
    for ready in (1.0, 0.4):
        key, first, count = random.randbytes(32), random.randrange(1 << 20), 500
        stream, digit, limb = random.getrandbits(64), random.getrandbits(8), random.getrandbits(16)
        await FallingEdge(dut.clk_i)
        dut.key_i.value = int.from_bytes(key, "little")
        dut.block_i.value = first
        dut.nonce_i.value = stream | (digit << 24 | limb) << 64
        dut.start_i.value = 1
        await FallingEdge(dut.clk_i)
        dut.start_i.value = 0
        ports = (dut.ternary_o, dut.gaussian_o, dut.uniform_o)
        tasks = [cocotb.start_soon(collect(dut, i, port, count, ready)) for i, port in enumerate(ports)]
        ternary, gaussian, uniform = [await task for task in tasks]
        source = words(key, first, count)
        assert ternary == [((word * 3 >> 64) - 1) % modulus for word in source]
        magnitudes = [bisect_right(table, word >> 1) for word in source]
        signs = [-1 if word & 1 else 1 for word in source]
        assert gaussian == [m * s % modulus for m, s in zip(magnitudes, signs, strict=True)]
        assert uniform == [residue(key, stream, digit, limb, modulus, i) for i in range(count)]


async def feed(dut: Any, words: list[int], rate: float) -> None:
    """Offers words to a sampler, in a share of the cycles."""
    for word in words:
        while random.random() >= rate:
            dut.valid_i.value = 0
            await FallingEdge(dut.clk_i)
        dut.valid_i.value, dut.word_i.value = 1, word
        while True:
            await RisingEdge(dut.clk_i)
            taken = bool(dut.ready_o.value)
            await FallingEdge(dut.clk_i)
            if taken:
                break
    dut.valid_i.value = 0


async def residues(dut: Any, count: int, rate: float) -> list[int]:
    """What a sampler gives, taken in a share of the cycles."""
    taken: list[int] = []
    for _ in range(200 * count):
        dut.ready_i.value = int(random.random() < rate)
        await RisingEdge(dut.clk_i)
        if dut.valid_o.value and dut.ready_i.value:
            taken.append(int(dut.residue_o.value))
        await FallingEdge(dut.clk_i)
        if len(taken) == count:
            break
    dut.ready_i.value = 0
    return taken


async def begin(dut: Any, clear: str) -> None:
    """A reset, and the clock."""
    for name in ("rst_ni", clear, "valid_i", "ready_i"):
        getattr(dut, name).value = 0
    await Timer(1, unit="step")
    Clock(dut.clk_i, 2, unit="step").start()
    for _ in range(3):
        await FallingEdge(dut.clk_i)
    dut.rst_ni.value = 1


async def samples(dut: Any, words: list[int]) -> list[int]:
    """What a sampler makes of words; words that it held before are thrown away."""
    await begin(dut, "clear_i")
    for _ in range(5):
        dut.valid_i.value, dut.word_i.value = 1, random.getrandbits(64)
        await FallingEdge(dut.clk_i)
    dut.valid_i.value, dut.clear_i.value = 0, 1
    await FallingEdge(dut.clk_i)
    dut.clear_i.value = 0
    source = cocotb.start_soon(feed(dut, words, 0.9))
    taken = await residues(dut, len(words), 0.7)
    await source
    return taken


@cocotb.test(timeout_time=100_000, timeout_unit="step")
async def errors_at_every_boundary(dut: Any) -> None:
    """The words below, at and above every entry of the table, with both signs: the whole tail."""
    table, modulus = cumulative("3.19", 63), int(dut.Modulus.value)
    draws = [0, (1 << 63) - 1, *(entry + i for entry in table for i in (-1, 0, 1) if entry + i < 1 << 63)]
    words = [draw << 1 | sign for draw in draws for sign in (0, 1)]
    random.shuffle(words)
    magnitudes = [bisect_right(table, word >> 1) for word in words]
    assert max(magnitudes) == len(table) - (table[-1] == 1 << 63)
    signs = [-1 if word & 1 else 1 for word in words]
    assert await samples(dut, words) == [m * s % modulus for m, s in zip(magnitudes, signs, strict=True)]


@cocotb.test(timeout_time=100_000, timeout_unit="step")
async def masks_at_every_boundary(dut: Any) -> None:
    third, modulus = (1 << 64) // 3, int(dut.Modulus.value)
    words = [0, 1, (1 << 64) - 1, *(k * third + i for k in (1, 2) for i in range(-2, 4))]
    assert await samples(dut, words) == [((word * 3 >> 64) - 1) % modulus for word in words]


@cocotb.test(timeout_time=100_000, timeout_unit="step")
async def every_position_is_redrawn(dut: Any) -> None:
    """Three chunks of forced words, rejected at every word of a block once, twice and three times.

    What the test gives for attempt n of a position is what it must see; the modulus itself is rejected.
    """
    await begin(dut, "start_i")
    dut.retry_valid_i.value = 0
    modulus, chunks = int(dut.Modulus.value), 3
    bad = [modulus, modulus + 1, (1 << 60) - 1]
    rejections = {position: random.choice([0, 0, 1, 2, 3]) for position in range(128 * chunks)}
    rejections |= {17 * i % 128 + 128 * (i % chunks): 1 + i % 3 for i in range(64)}
    expected, halves, redrawn = [], {}, {}
    for position, times in rejections.items():
        draws = [random.choice(bad) for _ in range(times)] + [random.randrange(modulus)]
        chunk, within = divmod(position, 128)
        word, pair = divmod(within, 8)
        for half in (0, 1):
            halves[16 * chunk + 2 * pair + half, word] = draws[0] >> 32 * half & 0xFFFFFFFF
        for attempt, draw in enumerate(draws[1:], 1):
            redrawn[16 * chunk + 2 * pair, attempt, word] = draw
        expected.append(draws[-1])
    words = [
        halves[block, 2 * i] | halves[block, 2 * i + 1] << 32
        for block in range(16 * chunks)
        for i in range(8)
    ]
    dut.start_i.value = 1
    await FallingEdge(dut.clk_i)
    dut.start_i.value = 0

    async def retries() -> None:
        """The second stream: after a start, the two blocks of the attempt, a word at a time."""
        queue: list[int] = []
        while True:
            await RisingEdge(dut.clk_i)
            if dut.retry_start_o.value:
                block, attempt = int(dut.retry_block_o.value), int(dut.retry_attempt_o.value)
                queue = []
                for half in (0, 1):
                    line = [
                        redrawn.get((block, attempt, word), 0xDEADBEEFDEADBEEF) >> 32 * half & 0xFFFFFFFF
                        for word in range(16)
                    ]
                    queue += [low | high << 32 for low, high in zip(line[::2], line[1::2], strict=True)]
            elif dut.retry_valid_i.value and dut.retry_ready_o.value:
                queue.pop(0)
            await FallingEdge(dut.clk_i)
            dut.retry_valid_i.value = int(bool(queue) and random.random() < 0.7)
            dut.retry_word_i.value = queue[0] if queue else 0

    second = cocotb.start_soon(retries())
    source = cocotb.start_soon(feed(dut, words, 0.9))
    assert await residues(dut, len(expected), 0.8) == expected
    await source
    second.cancel()


def test_uniform_sampler(simulate: Simulate) -> None:
    simulate("uniform_sampler", only="every_position_is_redrawn", random_start=True)


def test_gaussian_sampler(simulate: Simulate) -> None:
    simulate("gaussian_sampler", only="errors_at_every_boundary", random_start=True)


def test_ternary_sampler(simulate: Simulate) -> None:
    simulate("ternary_sampler", only="masks_at_every_boundary", random_start=True)


@pytest.mark.parametrize(
    ("bits", "modulus"), [pytest.param(60, PRIME, marks=pytest.mark.full), (50, UNLUCKY)]
)
def test_samplers(simulate: Simulate, bits: int, modulus: int) -> None:
    """With q0, test_client_core.py has them in the short run."""
    simulate(
        "samplers_bench",
        {"Bits": bits, "Modulus": f"60'd{modulus}"},
        only="match_their_definitions",
        random_start=True,
    )
