"""client_core against the Rust engine, bit for bit, and against everything a host can do wrong."""

import os
import random
from pathlib import Path
from typing import Any

import axi
import cocotb
import pytest
from chacha import block
from client import BIT, LIMIT, Q0, Core, store, vector
from client_trace import Trace, watch
from cocotb.triggers import FallingEdge
from fixtures import BUILD, CheckVectors, Simulate, Vectors


@cocotb.test(timeout_time=LIMIT, timeout_unit="step")
async def computes_what_the_software_computes(dut: Any) -> None:
    """Bit for bit, in exactly the cycles that the page derives."""
    core = Core(dut)
    await core.start_clock()
    assert await core.read("ID") == 0x4343574B
    assert await core.read("CONFIG") == core.log_n
    c0, c1 = await core.encrypt(vector("message"), vector("pk_b"))
    cycles = await core.read("CYCLES")
    dut._log.info(f"encryption: {cycles} cycles")
    assert c1 == vector("c1")
    assert c0 == vector("c0")
    assert cycles == core.cycles("encrypt")
    plain = await core.decrypt(c0, c1, vector("secret"))
    cycles = await core.read("CYCLES")
    dut._log.info(f"decryption: {cycles} cycles")
    assert plain == vector("decrypted")
    assert cycles == core.cycles("decrypt")
    for name, words in (("c0", c0), ("c1", c1), ("decrypted", plain)):
        store(f"hardware_{name}", words)


@cocotb.test(timeout_time=LIMIT, timeout_unit="step", skip="TRACES" not in os.environ)
async def leaves_a_trace(dut: Any) -> None:
    """For the picture of doc/: the activity of every part in one encryption and one decryption."""
    core = Core(dut)
    await core.start_clock()
    for name in ("encryption", "decryption"):
        trace = Trace()
        watcher = cocotb.start_soon(watch(dut, trace))
        if name == "encryption":
            await core.encrypt(vector("message"), vector("pk_b"))
        else:
            await core.decrypt(vector("c0"), vector("c1"), vector("secret"))
        await watcher
        assert trace.cycle == await core.read("CYCLES")
        trace.store(Path(os.environ["TRACES"]) / f"client_{name}.json")


@cocotb.test(timeout_time=LIMIT, timeout_unit="step")
async def back_pressure_and_back_to_back_change_nothing(dut: Any) -> None:
    core = Core(dut)
    await core.start_clock()
    for rate in (0.7, 1.0, 0.3):
        c0, c1 = await core.encrypt(vector("message"), vector("pk_b"), rate)
        assert (c0, c1) == (vector("c0"), vector("c1"))
        assert await core.decrypt(c0, c1, vector("secret"), rate) == vector("decrypted")


@cocotb.test(timeout_time=LIMIT, timeout_unit="step")
async def corner_values(dut: Any) -> None:
    """Equal evaluations are those of a constant, a constant in the message is added to every evaluation."""
    core = Core(dut)
    await core.start_clock()
    n, top = core.n, Q0 - 1
    zeros = [0] * (n - 1)
    for x0, x1, secret in (
        (0, 0, 0),
        (top, top, top),
        (top, 0, top),
        (1, top, 1),
        (top, top, 2),
        (Q0 // 2, 2, top),
    ):
        assert await core.decrypt([x0] * n, [x1] * n, [secret] * n) == [(x0 + x1 * secret) % Q0, *zeros]
    base, mask = await core.encrypt([0, *zeros], vector("pk_b"))
    for constant in (1, top):
        c0, c1 = await core.encrypt([constant, *zeros], vector("pk_b"))
        assert c1 == mask == vector("c1")
        assert c0 == [(word + constant) % Q0 for word in base]
    # With b = 0, c_0 is the transform of e_0 + m.
    everywhere, _ = await core.encrypt([top] * n, [0] * n)
    plain, _ = await core.encrypt([0] * n, [0] * n)
    difference = [(x - y) % Q0 for x, y in zip(everywhere, plain, strict=True)]
    assert await core.decrypt(difference, [0] * n, [0] * n) == [top] * n


def block_of(key: bytes, tail: list[int], rounds: int) -> int:
    """A block of ChaCha as one number, the first word lowest."""
    return sum(word << 32 * i for i, word in enumerate(block(key, tail, rounds)))


def candidate_of(seed: bytes, index: int, attempt: int) -> int:
    """Candidate of residue `index` of a public key's uniform half
    (crates/ring/src/randomness/expander.rs)."""
    chunk, position = divmod(index, 128)
    word, pair = divmod(position, 8)
    low, high = (
        block_of(seed, [16 * chunk + 2 * pair + i, 0, 3 << 8, attempt << 16], 8) >> 32 * word & 0xFFFFFFFF
        for i in (0, 1)
    )
    return (low | high << 32) & (1 << 60) - 1


@cocotb.test(timeout_time=LIMIT, timeout_unit="step")
async def nothing_secret_is_left(dut: Any) -> None:
    core = Core(dut)
    await core.start_clock()

    def secrets() -> int:
        left = int(dut.u_registers.entropy_o.value)
        for memory in dut.gen_memory:
            for bank in memory.u_memory.gen_bank:
                left |= any(int(bank.lines[i].value) for i in range(len(bank.lines)))
        return left

    # What the generators make of the entropy: every block of the three streams.
    entropy = b"".join(word.to_bytes(8, "little") for word in vector("entropy"))
    drawn = {block_of(entropy, [number, 0, 0, 0], 20) for number in range(3 * core.n // 8 + 32)}

    def generated() -> bool:
        """Whether a block of the entropy's streams is left in a generator."""
        return any(
            int(stream.u_stream.fifo[i].value) in drawn
            for stream in dut.gen_stream
            for i in range(len(stream.u_stream.fifo))
        )

    await core.load("ENTROPY", vector("entropy"))
    assert secrets()
    await core.encrypt(vector("message"), vector("pk_b"))
    assert not secrets()
    assert not generated()
    await core.decrypt(vector("c0"), vector("c1"), vector("secret"))
    assert not secrets()
    # An operation that is ended in the middle leaves nothing, either.
    await core.load("ENTROPY", vector("entropy"))
    await core.begin("ENCRYPT")
    source = cocotb.start_soon(axi.send(dut, vector("message")))
    for _ in range(core.n // 2):
        await FallingEdge(dut.clk_i)
    assert generated()
    await source
    for _ in range(core.n // 2):
        await FallingEdge(dut.clk_i)
    await core.begin("ABORT")
    await core.settled()
    for _ in range(400):  # until the seed's blocks have filled the queues
        await FallingEdge(dut.clk_i)
    assert not secrets()
    assert not generated()


async def reject(dut: Any, candidate: int, times: int) -> None:
    """Makes the sampler of the uniform half see q0 in place of a candidate, and reject that many redraws."""
    sampler = dut.u_uniform
    while int(sampler.value_q.value) != candidate or not sampler.candidate_q.value:
        await FallingEdge(dut.clk_i)
    sampler.value_q.value = Q0
    for _ in range(times):
        while not sampler.seeking_q.value:
            await FallingEdge(dut.clk_i)
        while sampler.seeking_q.value:
            await FallingEdge(dut.clk_i)
        sampler.rejected_q.value = 1


@cocotb.test(timeout_time=LIMIT, timeout_unit="step")
async def rejected_candidates_are_redrawn(dut: Any) -> None:
    """Candidates of a that are forced to q0 come from later attempts of their position, as in software.

    A product a v + e1 changes by the difference of the candidates times v, which c0 of two keys b gives.
    """
    core = Core(dut)
    await core.start_clock()
    seed = b"".join(word.to_bytes(8, "little") for word in vector("pk_seed"))
    b = vector("pk_b")
    c0, c1 = await core.encrypt(vector("message"), b)
    more, _ = await core.encrypt(vector("message"), [(word + 1) % Q0 for word in b])
    mask = [(x - y) % Q0 for x, y in zip(more, c0, strict=True)]
    for index, times in ((5, 0), (core.n - 100, 0), (131, 1)):
        first, last = (candidate_of(seed, index, attempt) for attempt in (0, times + 1))
        forced = cocotb.start_soon(reject(dut, first, times))
        same, other = await core.encrypt(vector("message"), b)
        await forced
        assert same == c0
        changed = list(c1)
        changed[index] = (c1[index] + (last - first) * mask[index]) % Q0
        assert other == changed


async def faulty(core: Core, frames: list[list[int]], word: int, last: int | None, cut: int) -> None:
    """Good frames, then the first `cut` beats of one with a fault."""
    for frame in frames:
        await axi.send(core.dut, frame)
    await axi.send(core.dut, [*[1] * (cut - 1), word], last=last)


async def two_frames(dut: Any) -> list[tuple[list[int], bool]]:
    return [await axi.receive(dut), await axi.receive(dut)]


FAULTS = {
    # A coefficient, the beat of the last flag (None: none), beats sent, as a share of N and a number.
    "RANGE": (Q0, None, (0.3, 1)),
    "SHORT_FRAME": (1, -1, (0.5, 3)),
    "MISSING_LAST": (1, None, (1, 0)),
}


@cocotb.test(timeout_time=LIMIT, timeout_unit="step")
async def faults_are_flagged_and_refused(dut: Any) -> None:
    """In every frame of both operations; an open output frame is closed and marked; then all is well."""
    core = Core(dut)
    await core.start_clock()
    n = core.n
    await core.load("SEED", vector("pk_seed"))
    good = {
        "ENCRYPT": [vector("message"), vector("pk_b")],
        "DECRYPT": [vector("c0"), vector("c1"), vector("secret")],
    }
    cases = [
        (name, operation, i) for name in FAULTS for operation in good for i in range(len(good[operation]))
    ]
    cases += [("RANGE", "DECRYPT", 0)]
    for number, (name, operation, position) in enumerate(cases):
        word, last, (share, beats) = FAULTS[name]
        if number == len(cases) - 1:  # the first beat is the last one, with all bits set
            word, last, share, beats = (1 << 64) - 1, -1, 0, 1
        if operation == "ENCRYPT":
            await core.load("ENTROPY", vector("entropy"))
        await core.begin(operation)
        sink = cocotb.start_soon(two_frames(dut)) if (operation, position) == ("ENCRYPT", 1) else None
        await faulty(core, good[operation][:position], word, last, int(share * n) + beats)
        if sink:
            (c1, bad1), (c0, bad0) = await sink
            assert (c1, bad1) == (vector("c1"), False)
            # What was computed of the second frame, and the beat that ends it.
            assert bad0
            assert len(c0) == int(share * n) + beats
        if last is None:
            # The rest of the frame is thrown away up to its last beat, or until the host gives up.
            for _ in range(n // 8 + 100):
                await FallingEdge(dut.clk_i)
            assert await core.read("STATUS") & BIT["STATUS.DISCARDING"]
            if number % 2:
                await axi.send(dut, [Q0, 5, 1])
            else:
                await core.begin("ABORT")
        await core.settled()
        expected = {name} | ({"ABORTED"} if last is None and number % 2 == 0 else set())
        if number == len(cases) - 1:
            expected |= {"SHORT_FRAME"}  # two faults of one beat
        assert await core.errors() == expected, (name, operation, position)
        assert not await core.read("STATUS") & BIT["STATUS.DONE"]
        await core.begin("DECRYPT")  # not while an error is pending
        assert await core.errors() == expected | {"REFUSED"}
        await core.clear()
        assert not dut.m_axis_tvalid_o.value
    c0, c1 = await core.encrypt(vector("message"), vector("pk_b"))
    assert (c0, c1) == (vector("c0"), vector("c1"))


@cocotb.test(timeout_time=LIMIT, timeout_unit="step")
async def misuse_of_registers_is_refused(dut: Any) -> None:
    core = Core(dut)
    await core.start_clock()
    # No entropy, or not all of it, or used before.
    await core.begin("ENCRYPT")
    assert await core.errors() == {"ENTROPY"}
    await core.clear()
    for i in range(7):
        await core.write("ENTROPY", 1, i)
    await core.begin("ENCRYPT")
    assert await core.errors() == {"ENTROPY"}
    await core.clear()
    await core.encrypt(vector("message"), vector("pk_b"))
    await core.begin("ENCRYPT")
    assert await core.errors() == {"ENTROPY"}
    await core.clear()
    # A start, entropy or seed while busy: flagged, and without effect.
    await core.begin("DECRYPT")
    await core.begin("ENCRYPT")
    await core.write("SEED", 5, 0)
    await core.write("ENTROPY", 5, 0)
    assert await core.errors() == {"REFUSED", "LOCKED"}
    assert await core.read("SEED") == vector("pk_seed")[0] & 0xFFFFFFFF
    await core.begin("ABORT")
    await core.settled()
    assert await core.errors() == {"REFUSED", "LOCKED", "ABORTED"}
    await core.clear()
    # Invalid addresses and accesses.
    assert await core.write("STATUS", 1) == axi.SLVERR
    assert await axi.write(dut, 0x60, 1) == axi.SLVERR
    assert await axi.write(dut, 0x08, BIT["CONTROL.DECRYPT"], strobe=1) == axi.SLVERR
    assert not dut.busy_o.value
    assert (await axi.read(dut, 0x20))[1] == axi.SLVERR
    assert (await axi.read(dut, 0x7C))[1] == axi.SLVERR
    assert (await axi.read(dut, 0x41))[1] == axi.SLVERR


@cocotb.test(timeout_time=LIMIT, timeout_unit="step")
async def reset_and_abort_at_any_time(dut: Any) -> None:
    """Also with a receiver that never takes anything. The next operation is as if nothing had been."""
    core = Core(dut)
    await core.start_clock()
    total = core.cycles("encrypt")
    for trial in range(8):
        await core.load("ENTROPY", vector("entropy"))
        await core.load("SEED", vector("pk_seed"))
        await core.begin("ENCRYPT")
        source = cocotb.start_soon(axi.send(dut, vector("message") + vector("pk_b"), last=core.n - 1))
        dut.m_axis_tready_i.value = trial % 4 < 2
        for _ in range(random.randrange(total)):
            await FallingEdge(dut.clk_i)
        source.cancel()
        dut.s_axis_tvalid_i.value = 0
        if trial % 2:
            await core.reset()
            assert not await core.errors()
            assert not dut.m_axis_tvalid_o.value
        else:
            running = bool(dut.busy_o.value)
            await core.begin("ABORT")
            await core.settled()
            assert await core.errors() == ({"ABORTED"} if running else set())
            dut.m_axis_tready_i.value = 1
            for _ in range(64):  # what is left of the frame, and the beat that closes it
                await FallingEdge(dut.clk_i)
            assert not dut.m_axis_tvalid_o.value
            await core.clear()
        if trial % 4 == 3:
            assert await core.decrypt(vector("c0"), vector("c1"), vector("secret")) == vector("decrypted")
    c0, c1 = await core.encrypt(vector("message"), vector("pk_b"))
    assert (c0, c1) == (vector("c0"), vector("c1"))


EXACT = "computes_what_the_software_computes"


def test_client_core(simulate: Simulate, vectors: Vectors, check_vectors: CheckVectors) -> None:
    """Every test, at the smallest degree."""
    folder = vectors("client", 10)
    simulate("client_core", {"LogN": 10}, {"VECTORS": str(folder)}, random_start=True, long=True)
    check_vectors("client", 10)


@pytest.mark.full
def test_a_message_bootstraps(simulate: Simulate, vectors: Vectors, check_vectors: CheckVectors) -> None:
    """What the core encrypts at N = 2^12 is what the software encrypts, bootstraps there and decrypts.

    In the short run test_client_core compares with the software at N = 2^10, and the software's own tests
    bootstrap what it encrypts (crates/thin-server).
    """
    folder = vectors("bootstrap", 12)
    simulate("client_core", {"LogN": 12}, {"VECTORS": str(folder)}, only=EXACT, random_start=True, long=True)
    check_vectors("bootstrap", 12)


# The core of the fewest LUTs.
SMALL = {"Cores": 1, "Rounds": 1}


def test_small_client_core(simulate: Simulate, vectors: Vectors) -> None:
    folder = vectors("client", 10)
    simulate("client_core", {"LogN": 10, **SMALL}, {"VECTORS": str(folder)}, only=EXACT, random_start=True)


@pytest.mark.full
def test_faults_of_a_small_client_core(simulate: Simulate, vectors: Vectors) -> None:
    folder = vectors("client", 10)
    simulate("client_core", {"LogN": 10, **SMALL}, {"VECTORS": str(folder)}, random_start=True)


@pytest.mark.full
@pytest.mark.parametrize(
    ("log_n", "parameters"),
    [(11, {}), (13, {}), (14, {}), (15, {}), (16, {}), (16, SMALL), (11, {"Cores": 3, "Rounds": 2})],
)
def test_client_core_sizes(
    simulate: Simulate,
    vectors: Vectors,
    check_vectors: CheckVectors,
    log_n: int,
    parameters: dict[str, int],
) -> None:
    folder = vectors("client", log_n)
    simulate("client_core", {"LogN": log_n, **parameters}, {"VECTORS": str(folder)}, only=EXACT)
    check_vectors("client", log_n)


@pytest.mark.full
def test_client_core_traces(simulate: Simulate, vectors: Vectors) -> None:
    """What doc/draw_client.py draws, at N = 2^12."""
    folder = vectors("client", 12)
    traces = BUILD / "traces"
    traces.mkdir(exist_ok=True)
    environment = {"VECTORS": str(folder), "TRACES": str(traces)}
    simulate("client_core", {"LogN": 12}, environment, only="leaves_a_trace")
