"""A host of client_core, as a driver would be written from its register map."""

import os
import tomllib
from array import array
from pathlib import Path
from typing import Any

import axi
import cocotb
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge
from fixtures import FAULT

Q0 = (1 << 60) - (1 << 18) + 1
_MAP = tomllib.loads(
    (Path(__file__).parents[1] / "rtl/client/client_registers.toml").read_text(encoding="utf-8")
)
OFFSET = {register["name"]: register["offset"] for register in _MAP["register"]}
BIT = {
    f"{register['name']}.{field['name']}": 1 << field["low"]
    for register in _MAP["register"]
    for field in register.get("fields", [])
}


def vector(name: str) -> list[int]:
    """A polynomial of the folder that the Rust engine wrote."""
    words = array("Q")
    words.frombytes((Path(os.environ["VECTORS"]) / f"{name}.words").read_bytes())
    return words.tolist()


def store(name: str, words: list[int]) -> None:
    """Leaves a polynomial there, for the Rust engine to check."""
    (Path(os.environ["VECTORS"]) / f"{name}.words").write_bytes(array("Q", words).tobytes())


# Sums of pipeline latencies, see the page: around the generator, around the transform, to the last beat out.
ENCRYPT_LATENCY = 32
DECRYPT_LATENCY = 25
# Steps (half cycles) after which a test has hung: nothing may.
LIMIT = 600_000 if FAULT else 4_000_000


class Core:
    """The simulated core and what its host does with it."""

    def __init__(self, dut: Any) -> None:
        self.dut = dut
        self.log_n = int(dut.LogN.value)
        self.n = 1 << self.log_n

    def cycles(self, operation: str) -> int:
        """Cycles of an operation whose streams never wait, derived in doc/client_core.md."""
        n, rounds = self.n, int(self.dut.Rounds.value)
        transform = self.log_n * (n // 8 + 14) + 8
        if operation == "decrypt":
            return 4 * n + transform + DECRYPT_LATENCY
        # In the time of 20 rounds a generator's ring gives a block for each of its stages, 8 words each.
        stages = 4 * rounds + 1
        turn = 20 // rounds * stages
        turns, words = divmod(n - 1, 8 * stages)
        sampling = turn + max(n, turns * turn + words + 1)
        waiting = 0 if int(self.dut.Cores.value) == 3 else 2 * (transform + 1)
        return sampling + 2 * n + transform + waiting + ENCRYPT_LATENCY

    async def reset(self) -> None:
        """Resets, and waits until the memories are wiped."""
        dut = self.dut
        for name in ("s_axis_tvalid", "m_axis_tready", "s_axil_awvalid", "s_axil_wvalid", "s_axil_arvalid",
                     "s_axil_bready", "s_axil_rready", "s_axis_tlast"):  # fmt: skip
            getattr(dut, f"{name}_i").value = 0
        dut.rst_ni.value = 0
        for _ in range(3):
            await FallingEdge(dut.clk_i)
        dut.rst_ni.value = 1
        await self.settled()

    async def start_clock(self) -> None:
        """The clock, then a reset."""
        Clock(self.dut.clk_i, 2, unit="step").start()
        await self.reset()

    async def settled(self, limit: int | None = None) -> None:
        """Waits until the core is idle, within `limit` cycles (by default those of a wipe, and some)."""
        for _ in range(limit or self.n // 8 + 100):
            await FallingEdge(self.dut.clk_i)
            if not self.dut.busy_o.value:
                return
        raise AssertionError("the core does not come to rest")

    async def write(self, name: str, data: int, index: int = 0) -> int:
        """Writes a register by name; the response."""
        return await axi.write(self.dut, OFFSET[name] + 4 * index, data)

    async def read(self, name: str, index: int = 0) -> int:
        """Reads a register by name."""
        value, response = await axi.read(self.dut, OFFSET[name] + 4 * index)
        assert response == axi.OKAY
        return value

    async def errors(self) -> set[str]:
        """The names of the sticky errors."""
        value = await self.read("ERROR")
        assert bool(self.dut.error_o.value) == (value != 0)
        return {
            name.partition(".")[2] for name, bit in BIT.items() if name.startswith("ERROR.") and value & bit
        }

    async def clear(self) -> None:
        """Clears all sticky errors."""
        await self.write("ERROR", 0xFFFFFFFF)
        assert not await self.errors()

    async def load(self, register: str, words: list[int]) -> None:
        """Eight words of entropy or seed, given as four of 64 bits."""
        for i, word in enumerate(words):
            await self.write(register, word & 0xFFFFFFFF, 2 * i)
            await self.write(register, word >> 32, 2 * i + 1)

    async def begin(self, operation: str) -> None:
        """Writes a bit of CONTROL."""
        await self.write("CONTROL", BIT[f"CONTROL.{operation}"])

    async def encrypt(
        self, message: list[int], b: list[int], rate: float = 1.0
    ) -> tuple[list[int], list[int]]:
        """c0 and c1, with entropy and seed of the vectors."""
        await self.load("ENTROPY", vector("entropy"))
        await self.load("SEED", vector("pk_seed"))
        source = cocotb.start_soon(self._feed([message, b], rate))
        await self.begin("ENCRYPT")
        c1, bad1 = await axi.receive(self.dut, rate)
        c0, bad0 = await axi.receive(self.dut, rate)
        await source
        assert not bad0
        assert not bad1
        await self._done()
        return c0, c1

    async def decrypt(self, c0: list[int], c1: list[int], secret: list[int], rate: float = 1.0) -> list[int]:
        """The plaintext with its error."""
        source = cocotb.start_soon(self._feed([c0, c1, secret], rate))
        await self.begin("DECRYPT")
        plain, bad = await axi.receive(self.dut, rate)
        await source
        assert not bad
        await self._done()
        return plain

    async def _feed(self, frames: list[list[int]], rate: float) -> None:
        for frame in frames:
            await axi.send(self.dut, frame, rate=rate)

    async def _done(self) -> None:
        await self.settled()
        assert await self.read("STATUS") == BIT["STATUS.DONE"]
        assert not await self.errors()
