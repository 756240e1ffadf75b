"""doc/key_switch_model.md: intervals of key switches up to L = 31, with the key from two kinds of memory.

The interval is that of a schedule whose chains are always busy. At small levels it is held to the schedules
that are searched for and simulated. A memory is simulated burst by burst on one channel.
"""

from dataclasses import dataclass

from key_switch_schedule import Shape, search
from output import finish

LOG_N, BEATS, CLOCK = 16, 4096, 236e6
LEVELS = [(level, alpha) for alpha in (1, 2, 4) for level in (3, 7, 15, 31)]
SEARCHED = [(1, 1), (2, 1), (3, 1), (4, 1), (5, 1), (2, 2), (3, 2), (4, 2)]
LIMIT = 1.1  # of a searched schedule, as a multiple of the model's

HEAD = """\
# Key switches up to L = 31: a model

Made by `generate/key_switch_model.py`, for N = 2^16 and 236 MHz, the paper's clock; ours is unknown. Of these
shapes, tests simulate L = 1 to 5 with alpha = 1 and L = 2 to 4 with alpha = 2.

A frame has at least as many slots as half of the transforms, and as the wide chain has for those modulo
primes of 60 bits ([key_switch.md](key_switch.md#other-levels-digits-of-several-primes)). A key's words are
packed to 60 and 51 bits. A memory's column has the interval, in us, of a core that waits for its key.

"""
MIDDLE = """
A schedule may have up to a tenth more slots; the generator of this page checks that. A level from 6 on needs
more memories of polynomials than were built.

*Memories.* A channel reads rows in order, one bank after another. A row opens when its bank's last row is a
row cycle old, and a refresh stops all banks. So the bursts hide the rows, and refreshes remain:

| memory | peak, GB/s | key at L = 3, GB/s | of the peak |
|---|---:|---:|---:|
"""
TAIL = """
The model has one reader, which asks early enough, and no other traffic: digits, addends and results are not
in it. So its rates are upper bounds.
"""


@dataclass(frozen=True)
class Memory:
    """Channels that read in order. Times are in ns: a burst, a row's cycle, a refresh, between refreshes."""

    name: str
    channels: int
    burst_bytes: int
    burst: float
    row_bytes: int
    banks: int
    row_cycle: float
    refresh: float
    interval: float

    @property
    def peak(self) -> float:
        """Bytes in a ns, without rows and refreshes."""
        return self.channels * self.burst_bytes / self.burst

    def time(self, size: int) -> float:
        """Ns for `size` bytes in order, spread over the channels; all banks are closed by a refresh."""
        now, next_refresh = 0.0, self.interval
        ready = [0.0] * self.banks  # when a bank may open its next row
        bursts = -(-size // (self.channels * self.burst_bytes))
        of_row = self.row_bytes // self.burst_bytes
        for row in range(-(-bursts // of_row)):
            bank = row % self.banks
            if now >= next_refresh:
                now += self.refresh
                next_refresh += self.interval
                ready = [now] * self.banks
            now = max(now, ready[bank])
            ready[bank] = now + self.row_cycle
            now += min(of_row, bursts - row * of_row) * self.burst
        return now


# JEDEC's refreshes of 8 Gbit dies; four modules of DDR4-2400 are an XCU250's card, HBM2 is that of an XCU280.
MEMORIES = [
    Memory("4 x DDR4-2400", 4, 64, 8 / 2.4, 8192, 16, 46.2, 350, 7800),
    Memory("HBM2, 32 half channels", 32, 32, 32 / 14.4, 1024, 16, 45, 350, 3900),
]


def slots(level: int, alpha: int) -> int:
    """Of a frame whose two chains, or whose wide chain, never rest."""
    digits = -(-(level + 1) // alpha)
    transforms = (digits + 2) * (level + 1 + alpha)
    return max(-(-transforms // 2), (digits + 2) * (1 + alpha))


def polynomials(level: int, alpha: int) -> int:
    """Of a key."""
    return 2 * -(-(level + 1) // alpha) * (level + 1 + alpha)


def packed_bytes(level: int, alpha: int) -> int:
    """Of a key whose words have 60 and 51 bits."""
    return 2 * -(-(level + 1) // alpha) * ((1 + alpha) * 60 + level * 51) << LOG_N - 3


def main() -> None:
    """Writes or checks the page."""
    columns = "".join(f" {memory.name} |" for memory in MEMORIES)
    lines = [*HEAD.splitlines(), f"| L | alpha | slots | cycles | us | key, MB | GB/s |{columns}"]
    lines.append(f"|{'---:|' * (7 + len(MEMORIES))}")
    for level, alpha in LEVELS:
        count = slots(level, alpha)
        own, size = count * BEATS / CLOCK * 1e6, packed_bytes(level, alpha)
        waits = "".join(f" {max(own, memory.time(size) / 1e3):,.0f} |" for memory in MEMORIES)
        lines.append(
            f"| {level} | {alpha} | {count:,} | {count * BEATS:,} | {own:,.0f} | {size / 1e6:,.1f} |"
            f" {size / own / 1e3:.0f} |{waits}"
        )
    lines += ["", "| L | alpha | slots by the model | by the schedule |", "|---:|---:|---:|---:|"]
    for level, alpha in SEARCHED:
        period, model = search(Shape(level, alpha)).period, slots(level, alpha)
        assert model <= period <= LIMIT * model, f"L = {level}, alpha = {alpha}: {period} slots, not {model}"
        lines.append(f"| {level} | {alpha} | {model} | {period} |")
    size = packed_bytes(3, 1)
    lines += MIDDLE.splitlines()
    for memory in MEMORIES:
        rate = size / memory.time(size)
        lines.append(f"| {memory.name} | {memory.peak:.1f} | {rate:.1f} | {rate / memory.peak:.1%} |")
    lines += TAIL.splitlines()
    finish("doc/key_switch_model.md", "\n".join([*lines, ""]))


if __name__ == "__main__":
    main()
