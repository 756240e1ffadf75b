"""ChaCha words against the block function written by its definition (vectors/chacha.py)."""

import random
from typing import Any

import cocotb
import pytest
from chacha import block
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge, RisingEdge
from fixtures import Simulate


def words(key: bytes, nonce: int, first: int, rounds: int, count: int) -> list[int]:
    """The first `count` 64-bit words from block `first` on."""
    tail = [nonce >> 32 * i & 0xFFFFFFFF for i in range(3)]
    stream: list[int] = []
    for number in range(first, first + count // 8 + 1):
        output = block(key, [number, *tail], rounds)
        stream += [low | high << 32 for low, high in zip(output[::2], output[1::2], strict=True)]
    return stream[:count]


async def reset(dut: Any) -> None:
    dut.rst_ni.value = 0
    dut.start_i.value = 0
    dut.ready_i.value = 0
    Clock(dut.clk_i, 2, unit="step").start()
    for _ in range(3):
        await FallingEdge(dut.clk_i)
    dut.rst_ni.value = 1


async def start(dut: Any, key: bytes, nonce: int, first: int, rounds: int) -> None:
    await FallingEdge(dut.clk_i)
    dut.key_i.value = int.from_bytes(key, "little")
    dut.nonce_i.value = nonce
    dut.block_i.value = first
    dut.long_i.value = int(rounds == 20)
    dut.start_i.value = 1
    await FallingEdge(dut.clk_i)
    dut.start_i.value = 0


async def take(dut: Any, count: int, ready: float) -> tuple[list[int], int]:
    """Takes words, ready in a given share of the cycles; also the cycles it took."""
    taken: list[int] = []
    cycles = 0
    while len(taken) < count:
        dut.ready_i.value = int(random.random() < ready)
        await RisingEdge(dut.clk_i)
        if dut.valid_o.value and dut.ready_i.value:
            taken.append(int(dut.word_o.value))
        cycles += 1
        await FallingEdge(dut.clk_i)
    return taken, cycles


@cocotb.test()
async def matches_the_definition_under_back_pressure(dut: Any) -> None:
    await reset(dut)
    for rounds in (8, 20):
        for ready in (1.0, 0.5, 0.1):
            key, nonce = random.randbytes(32), random.getrandbits(96)
            first = random.choice([0, 1, 12345, (1 << 32) - 3 - 50])
            count = random.randrange(50, 400)
            await start(dut, key, nonce, first, rounds)
            taken, _ = await take(dut, count, ready)
            assert taken == words(key, nonce, first, rounds, count)


@cocotb.test()
async def a_start_discards_what_was_under_way(dut: Any) -> None:
    await reset(dut)
    key, nonce = random.randbytes(32), random.getrandbits(96)
    for pause in range(1, 60, 3):
        await start(dut, key, nonce, 77, random.choice([8, 20]))
        await take(dut, 1, 1.0)
        for _ in range(pause):
            await FallingEdge(dut.clk_i)
        await start(dut, key, nonce, pause, 20)
        assert (await take(dut, 20, 1.0))[0] == words(key, nonce, pause, 20, 20)


@cocotb.test()
async def sustains_its_rate(dut: Any) -> None:
    """With S rounds in the ring and R in all: 8 S / R words in a cycle, at most one."""
    await reset(dut)
    ring = int(dut.Rounds.value)
    for rounds in (8, 20):
        await start(dut, bytes(32), 0, 0, rounds)
        await take(dut, 64, 1.0)
        _, cycles = await take(dut, 8 * 100, 1.0)
        assert cycles <= 100 * max(8, -(-rounds // ring)) + 5 * rounds


@pytest.mark.parametrize("rounds", [pytest.param(1, marks=pytest.mark.full), 4])
def test_chacha_stream(simulate: Simulate, rounds: int) -> None:
    simulate("chacha_stream", {"Rounds": rounds}, random_start=True)
