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


@pytest.mark.parametrize(("bits", "modulus"), [(60, PRIME), (50, UNLUCKY)])
def test_samplers(simulate: Simulate, bits: int, modulus: int) -> None:
    simulate("samplers_bench", {"Bits": bits, "Modulus": f"60'd{modulus}"}, random_start=True)
