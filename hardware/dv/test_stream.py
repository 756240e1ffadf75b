"""The parts of ports and delays alone: AXI4-Lite, a polynomial's port, a delay line after a reset."""

import random
from typing import Any

import axi
import cocotb
import pytest
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge, RisingEdge, Timer
from fixtures import Simulate


async def reset(dut: Any, zero: tuple[str, ...]) -> None:
    """Inputs at zero, a reset, and the clock. Registers start with random bits: no edge comes before it."""
    for name in ("rst_ni", *zero):
        getattr(dut, name).value = 0
    await Timer(1, unit="step")
    Clock(dut.clk_i, 2, unit="step").start()
    for _ in range(3):
        await FallingEdge(dut.clk_i)
    dut.rst_ni.value = 1


AXIL = ("s_axil_awvalid_i", "s_axil_wvalid_i", "s_axil_arvalid_i", "s_axil_bready_i", "s_axil_rready_i")


async def watch_writes(dut: Any, seen: list[tuple[int, int]]) -> None:
    """Every word that the block behind the port is given."""
    while True:
        await RisingEdge(dut.clk_i)
        if dut.write_o.value:
            seen.append((int(dut.write_address_o.value), int(dut.write_data_o.value)))


@cocotb.test(timeout_time=100_000, timeout_unit="step")
async def takes_every_write_once(dut: Any) -> None:
    """In any order of address and data; only aligned whole words reach the block; the rest is answered."""
    await reset(dut, AXIL)
    seen: list[tuple[int, int]] = []
    cocotb.start_soon(watch_writes(dut, seen))
    expected = []
    for _ in range(300):
        address, data = random.randrange(128) & random.choice([0x7C, 0x7F]), random.getrandbits(32)
        strobe, known = random.choice([15, 15, 15, 7, 0]), random.getrandbits(1)
        dut.write_known_i.value = known
        response = await axi.write(dut, address, data, strobe)
        whole = strobe == 15 and address % 4 == 0
        expected += [(address, data)] if whole else []
        assert response == (axi.OKAY if whole and known else axi.SLVERR)
    assert seen == expected


@cocotb.test(timeout_time=100_000, timeout_unit="step")
async def waits_for_address_and_data(dut: Any) -> None:
    """Both are taken before the other comes; one alone does nothing, however long it waits."""
    await reset(dut, AXIL)
    for first, second in (("aw", "w"), ("w", "aw")):
        dut.s_axil_awaddr_i.value, dut.s_axil_wdata_i.value, dut.s_axil_wstrb_i.value = 8, 5, 15
        assert dut.s_axil_awready_o.value == dut.s_axil_wready_o.value == 1
        getattr(dut, f"s_axil_{first}valid_i").value = 1
        await FallingEdge(dut.clk_i)
        getattr(dut, f"s_axil_{first}valid_i").value = 0
        for _ in range(20):
            await FallingEdge(dut.clk_i)
            assert not dut.write_o.value
            assert not dut.s_axil_bvalid_o.value
        assert not getattr(dut, f"s_axil_{first}ready_o").value
        getattr(dut, f"s_axil_{second}valid_i").value = 1
        await FallingEdge(dut.clk_i)
        getattr(dut, f"s_axil_{second}valid_i").value = 0
        assert dut.write_o.value
        for _ in range(20):  # the answer waits for its receiver
            await FallingEdge(dut.clk_i)
            assert dut.s_axil_bvalid_o.value
        dut.s_axil_bready_i.value = 1
        await FallingEdge(dut.clk_i)
        dut.s_axil_bready_i.value = 0
        assert not dut.s_axil_bvalid_o.value


@cocotb.test(timeout_time=100_000, timeout_unit="step")
async def answers_every_read(dut: Any) -> None:
    await reset(dut, AXIL)
    for _ in range(200):
        address, value = random.randrange(128) & random.choice([0x7C, 0x7F]), random.getrandbits(32)
        known = random.getrandbits(1)
        dut.read_value_i.value, dut.read_known_i.value = value, known
        good = address % 4 == 0 and known
        assert await axi.read(dut, address) == (value, axi.OKAY if good else axi.SLVERR)
        assert int(dut.read_address_o.value) == address


@cocotb.test(timeout_time=100_000, timeout_unit="step")
async def a_frame_is_checked(dut: Any) -> None:
    """Beats of any range, early and late flags, pauses of both sides, against a model of the port."""
    await reset(dut, ("en_i", "need_i", "tvalid_i", "tlast_i", "time_i"))
    words, beats = int(dut.Words.value), 1 << int(dut.TimeWidth.value)
    modulus = (1 << 60) - 93
    dut.modulus_i.value = modulus
    short = skip = False
    time = 0
    for _ in range(4000):
        need, en, valid = (random.random() < rate for rate in (0.8, 0.8, 0.8))
        last = random.random() < (0.7 if time == beats - 1 or skip else 0.1)
        data = [random.choice([0, modulus - 1, modulus, random.getrandbits(64), random.randrange(modulus)])
                if random.random() < 0.2 else random.randrange(modulus) for _ in range(words)]  # fmt: skip
        for name, value in (("need_i", need), ("tvalid_i", valid), ("tlast_i", last), ("time_i", time),
                            ("tdata_i", sum(word << 64 * i for i, word in enumerate(data)))):  # fmt: skip
            getattr(dut, name).value = int(value)
        ok = not need or short or (valid and not skip)
        en = en and ok  # as the pipeline does: it moves when every port is well
        dut.en_i.value = int(en)
        await RisingEdge(dut.clk_i)
        taken = need and en and not short
        bad = [word >= modulus for word in data]
        assert bool(dut.ok_o.value) == ok
        assert bool(dut.taken_o.value) == taken
        assert bool(dut.tready_o.value) == (skip or taken)
        assert bool(dut.range_o.value) == (taken and any(bad))
        assert bool(dut.short_o.value) == (taken and last and time < beats - 1)
        assert bool(dut.missing_o.value) == (taken and not last and time == beats - 1)
        out = int(dut.words_o.value)
        assert [out >> 60 * i & (1 << 60) - 1 for i in range(words)] == [
            0 if short or wrong else word for word, wrong in zip(data, bad, strict=True)
        ]
        if skip and valid and last:
            skip = False
        elif taken and not last and time == beats - 1:
            skip = True
        if need and en:
            if taken and last and time < beats - 1:
                short = True
            elif time == beats - 1:
                short = False
            time = (time + 1) % beats
        await FallingEdge(dut.clk_i)


@cocotb.test(timeout_time=100_000, timeout_unit="step")
async def buffers_in_order(dut: Any) -> None:
    """Every word once, in order, whatever both sides do; full rate when neither waits; a reset empties it."""
    await reset(dut, ("valid_i", "ready_i", "data_i"))
    for rates in [(1.0, 1.0), (0.5, 0.5), (1.0, 0.2), (0.2, 1.0), (1.0, 1.0)]:
        held: list[int] = []
        taken = 0
        for _ in range(200):
            valid, ready = (int(random.random() < rate) for rate in rates)
            word = random.getrandbits(64)
            dut.valid_i.value, dut.ready_i.value, dut.data_i.value = valid, ready, word
            await RisingEdge(dut.clk_i)
            assert bool(dut.ready_o.value) == (len(held) < 4)
            assert bool(dut.valid_o.value) == bool(held)
            assert bool(dut.more_o.value) == (len(held) > 1)
            pushed = valid and len(held) < 4
            if held and ready:
                assert int(dut.data_o.value) == held.pop(0)
                taken += 1
            held += [word] if pushed else []
            await FallingEdge(dut.clk_i)
        assert rates != (1.0, 1.0) or taken == 199
        dut.rst_ni.value, dut.valid_i.value = 0, 0
        await FallingEdge(dut.clk_i)
        dut.rst_ni.value = 1


@cocotb.test(timeout_time=400_000, timeout_unit="step")
async def needs_are_foretold(dut: Any) -> None:
    """A pipeline that moves when `next_o` said so never lacks a beat, and gets each once and in order."""
    await reset(dut, ("en_i", "need_i", "need_next_i", "tvalid_i", "tlast_i", "time_i", "tuser_i", "tdata_i"))
    beats = 1 << int(dut.TimeWidth.value)
    dut.modulus_i.value = (1 << 60) - 93
    inside: list[tuple[int, bool]] = []
    offer: tuple[int, bool] | None = None
    time = sent = moved = 0
    en = need = short = skip = False
    rate = 1.0
    for cycle in range(12000):
        smooth = cycle < 1000  # nobody waits, and frames are right
        if cycle % 64 == 0:
            rate = random.choice([0.1, 0.3, 0.9])
        if offer is None and (smooth or random.random() < rate):
            last = sent % beats == beats - 1 if smooth else random.random() < 0.1
            offer, sent = (random.getrandbits(60) % ((1 << 60) - 93), last), sent + 1
        need_next = smooth or random.random() < 0.8
        word, last = offer or (0, False)
        for name, value in (("en_i", en), ("need_i", need), ("need_next_i", need_next), ("time_i", time),
                            ("tdata_i", word), ("tvalid_i", offer is not None), ("tlast_i", last),
                            ("tuser_i", word & 1)):  # fmt: skip
            getattr(dut, name).value = int(value)
        await RisingEdge(dut.clk_i)
        head, skipping = inside[0] if inside else None, skip
        assert bool(dut.tready_o.value) == (len(inside) < 4)
        taken, missing = en and need and not short, False
        assert bool(dut.taken_o.value) == taken
        if taken:
            assert head is not None, "a need was foretold to be met"
            assert not skip
            assert (int(dut.words_o.value) & (1 << 60) - 1, int(dut.user_o.value)) == (head[0], head[0] & 1)
            missing = time == beats - 1 and not head[1]
            skip, short = missing, head[1] and time < beats - 1
        elif en and need:
            assert int(dut.words_o.value) == 0
            short = time < beats - 1
        elif skip and head:
            skip = not head[1]
        if len(inside) > 1 and not skipping and not missing:
            assert dut.next_o.value, "two beats are there, and the pipeline may not move"
            assert dut.there_o.value
        moved += taken
        foretold, accepted = bool(dut.next_o.value), offer is not None and len(inside) < 4
        if inside and (taken or skipping):
            inside.pop(0)
        if offer is not None and accepted:
            inside.append(offer)
            offer = None
        time = (time + (en and need)) % beats
        need = need_next if en else need
        en = foretold and (smooth or random.random() < 0.9)
        await FallingEdge(dut.clk_i)
        assert not smooth or moved >= cycle - 3
    assert moved > 2000


@cocotb.test(timeout_time=400_000, timeout_unit="step")
async def closes_what_it_has_begun(dut: Any) -> None:
    """Beats come in order; a clear drops those not offered, keeps the one offered, and ends an open frame."""
    await reset(dut, ("clear_i", "give_i", "tready_i", "data_i", "user_i", "last_i"))
    pending: list[tuple[int, int, int, bool]] = []
    opened = room = False
    cleared = closed = 0
    for cycle in range(8000):
        ready = random.random() < (1.0 if cycle < 1000 else random.choice([0.05, 0.5, 0.95]))
        clear = cycle >= 1000 and random.random() < 0.03
        give = room and not clear and (cycle < 1000 or random.random() < 0.7)
        beat = (random.getrandbits(64), random.getrandbits(2), int(random.random() < 0.2))
        for name, value in zip(("data_i", "user_i", "last_i"), beat, strict=True):
            getattr(dut, name).value = value
        dut.tready_i.value, dut.clear_i.value, dut.give_i.value = int(ready), int(clear), int(give)
        await RisingEdge(dut.clk_i)
        assert bool(dut.tvalid_o.value) == bool(pending)
        if pending:
            data, user, last, live = pending[0]
            shown = (
                int(dut.tdata_o.value),
                int(dut.tuser_o.value),
                int(dut.tlast_o.value),
                bool(dut.live_o.value),
            )
            assert shown == (data, user, last, live)
            if ready:
                pending.pop(0)
                opened = not last
            elif clear:
                opened = not last
        if clear:
            kept = [] if ready else [(*beat[:3], False) for beat in pending[:1]]
            pending = kept + ([(0, 1, 1, False)] if opened else [])
            cleared, closed = cleared + 1, closed + opened
        elif give:
            pending.append((*beat, True))
        room = bool(dut.space_o.value) and not clear
        assert cycle < 5 or cycle >= 1000 or room
        await FallingEdge(dut.clk_i)
    assert cleared > 100
    assert 20 < closed < cleared


@cocotb.test(timeout_time=100_000, timeout_unit="step")
async def delays_and_forgets(dut: Any) -> None:
    """Words come out Depth enabled cycles later; after a reset a cleared line gives zeros until then."""
    depth, cleared = int(dut.Depth.value), bool(int(dut.Cleared.value))
    await reset(dut, ("en_i", "d_i"))
    for _ in range(6):
        line: list[int | None] = [0 if cleared else None] * depth
        for _ in range(random.choice([1, depth, 5 * depth])):
            enabled, word = random.random() < 0.8, random.randrange(1, 1 << 60)
            dut.en_i.value, dut.d_i.value = int(enabled), word
            await FallingEdge(dut.clk_i)
            if enabled:
                line = [*line[1:], word]
            assert line[0] is None or int(dut.q_o.value) == line[0]
        dut.rst_ni.value = 0
        await FallingEdge(dut.clk_i)
        dut.rst_ni.value = 1
        if cleared:
            assert int(dut.q_o.value) == 0


def test_axil_port(simulate: Simulate) -> None:
    for only in ("takes_every_write_once", "waits_for_address_and_data", "answers_every_read"):
        simulate("axil_port", only=only, random_start=True)


def test_frame_input(simulate: Simulate) -> None:
    simulate("frame_input", {"Words": 2, "TimeWidth": 3}, only="a_frame_is_checked", random_start=True)


def test_stream_buffer(simulate: Simulate) -> None:
    simulate("stream_buffer", only="buffers_in_order", random_start=True)


def test_buffered_input(simulate: Simulate) -> None:
    simulate("buffered_input", {"Words": 2, "TimeWidth": 3}, only="needs_are_foretold", random_start=True)


def test_frame_output(simulate: Simulate) -> None:
    simulate("frame_output", {"UserWidth": 2}, only="closes_what_it_has_begun", random_start=True)


@pytest.mark.parametrize(("depth", "cleared"), [(2, 0), (7, 0), (7, 1)])
def test_delay_line(simulate: Simulate, depth: int, cleared: int) -> None:
    simulate("delay_line", {"Depth": depth, "Cleared": cleared}, only="delays_and_forgets", random_start=True)
