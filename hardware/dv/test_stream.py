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
            assert int(dut.count_o.value) == len(held)
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


class Framer:
    """The polynomials' beats that a port makes of those it takes, in its buffer, each with its faults."""

    def __init__(self, beats: int) -> None:
        self.beats, self.time = beats, 0
        self.fill = self.skip = False
        self.inside: list[tuple[list[int], int, bool, bool, bool]] = []  # words, user, zeros, short, missing
        self.promised = 0

    def ready(self) -> bool:
        """Whether it takes a beat that is offered."""
        return self.skip or (len(self.inside) < 4 and not self.fill)

    def step(self, offer: tuple[list[int], int, bool] | None, taken: bool) -> None:
        """A cycle: a beat may come, and one may leave."""
        place = len(self.inside) < 4
        last_beat = self.time == self.beats - 1
        if taken:
            self.inside.pop(0)
            self.promised -= 1
        if self.skip:
            self.skip = not (offer and offer[2])
        elif place and (self.fill or offer):
            words, user, last = offer or ([], 0, False)
            short = last and not last_beat and not self.fill
            missing = not last and last_beat and not self.fill
            self.inside.append((words, user, self.fill, short, missing))
            self.fill = (self.fill or short) and not last_beat
            self.skip = missing
            self.time = (self.time + 1) % self.beats


@cocotb.test(timeout_time=400_000, timeout_unit="step")
async def frames_are_put_in_order(dut: Any) -> None:
    """Beats of any range, early and late flags, pauses of both sides: each promised beat is there."""
    await reset(dut, ("en_i", "go_i", "need_i", "need_next_i", "tvalid_i", "tlast_i", "tuser_i", "tdata_i"))
    words, modulus = int(dut.Words.value), (1 << 60) - 93
    dut.modulus_i.value = modulus
    port = Framer(1 << int(dut.TimeWidth.value))
    needs = [True] * 1000 + [random.random() < 0.8 for _ in range(20000)]
    offer: tuple[list[int], int, bool] | None = None
    at = sent = moved = 0  # `at`: the pipeline's step
    en = en_next = False
    rate = 1.0
    for cycle in range(12000):
        smooth = cycle < 1000  # nobody waits, and frames are right
        if cycle % 64 == 0:
            rate = random.choice([0.1, 0.3, 0.9])
        if offer is None and (smooth or random.random() < rate):
            rare = 0.7 if port.time == port.beats - 1 else 0.05
            last = sent % port.beats == port.beats - 1 if smooth else random.random() < rare
            data = [
                random.choice([0, modulus - 1, modulus, random.getrandbits(64)])
                if not smooth and random.random() < 0.2
                else random.randrange(modulus)
                for _ in range(words)
            ]
            offer, sent = (data, random.getrandbits(1), last), sent + 1
        need, need_next = needs[at], needs[at + en + en_next]
        free = len(port.inside) - port.promised
        foretold = not need_next or free > 0
        go = foretold and (smooth or random.random() < 0.9)
        # Without a beat the other signals mean nothing.
        data, user, last = offer or ([], 0, bool(random.getrandbits(1)))
        for name, value in (("en_i", en), ("go_i", go), ("need_i", need), ("need_next_i", need_next),
                            ("tdata_i", sum(word << 64 * i for i, word in enumerate(data))),
                            ("tuser_i", user), ("tvalid_i", offer is not None),
                            ("tlast_i", last)):  # fmt: skip
            getattr(dut, name).value = int(value)
        await RisingEdge(dut.clk_i)
        assert bool(dut.next_o.value) == foretold
        assert bool(dut.tready_o.value) == port.ready()
        taken = en and need
        assert bool(dut.there_o.value) == (len(port.inside) > int(taken))
        if taken:
            inside, of, zeros, short, missing = port.inside[0]
            bad = [word >= modulus for word in inside]
            out = int(dut.words_o.value)
            assert [out >> 60 * i & (1 << 60) - 1 for i in range(words)] == (
                [0] * words if zeros else [0 if b else w for w, b in zip(inside, bad, strict=True)]
            )
            assert zeros or int(dut.user_o.value) == of
            assert bool(dut.taken_o.value) == (not zeros)
            assert bool(dut.range_o.value) == (not zeros and any(bad))
            assert (bool(dut.short_o.value), bool(dut.missing_o.value)) == (short, missing)
        else:
            assert not any(getattr(dut, f"{name}_o").value for name in ("taken", "range", "short", "missing"))
        moved += taken
        accepted = port.ready()
        port.step(offer, taken)
        port.promised += go and need_next
        if accepted:
            offer = None
        at += en
        en, en_next = en_next, go
        await FallingEdge(dut.clk_i)
        assert not smooth or moved >= cycle - 5
    assert moved > 2000


@cocotb.test(timeout_time=400_000, timeout_unit="step")
async def closes_what_it_has_begun(dut: Any) -> None:
    """Beats come in order; a clear drops those not offered, keeps the one offered, and ends an open frame."""
    await reset(dut, ("clear_i", "give_i", "tready_i", "data_i", "user_i", "last_i"))
    pending: list[tuple[int, int, int, bool]] = []
    opened = room = room_next = False
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
        room, room_next = room_next and not clear, bool(dut.space_o.value) and not clear
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
    only = ("takes_every_write_once", "waits_for_address_and_data", "answers_every_read")
    simulate("axil_port", only=only, random_start=True)


def test_frame_input(simulate: Simulate) -> None:
    simulate("frame_input", {"Words": 2, "TimeWidth": 3}, only="frames_are_put_in_order", random_start=True)


def test_stream_buffer(simulate: Simulate) -> None:
    simulate("stream_buffer", only="buffers_in_order", random_start=True)


def test_frame_output(simulate: Simulate) -> None:
    simulate("frame_output", {"UserWidth": 2}, only="closes_what_it_has_begun", random_start=True)


# Registers; a memory, and the zeros after a reset.
@pytest.mark.parametrize(("depth", "cleared"), [(2, 0), (7, 1)])
def test_delay_line(simulate: Simulate, depth: int, cleared: int) -> None:
    simulate("delay_line", {"Depth": depth, "Cleared": cleared}, only="delays_and_forgets", random_start=True)
