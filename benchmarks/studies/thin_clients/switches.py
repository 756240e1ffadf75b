"""The switches that make a thin client's ciphertexts smaller, each alone, with its bytes, times and
errors.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from harness.pages.table import markdown
from harness.record import BadRecord

from studies.thin_clients.modes import bits

DATA = {
    "full": "a number in every coefficient",
    "small": "a number in every sixty-fourth coefficient",
    "integers": "as many integers of 8 bits as there are coefficients",
}


@dataclass(frozen=True)
class Switch:
    """One way to send and to answer. Every answer was compared with what was sent."""

    log_n: int
    bits: int
    data: str
    count: int
    switches: str
    dropped: tuple[tuple[int, int], tuple[int, int]]
    each: int
    bytes_up: int
    bytes_up_words: int
    bytes_down: int
    encrypt_s: float
    decrypt_s: float
    read_s: float
    answer_s: float
    worst: float
    bound: float


def parse(line: str) -> Switch:
    """A line of the program.

    Raises:
        BadRecord: it is malformed, or an answer was not within its bound.
    """
    try:
        entry: dict[str, Any] = json.loads(line)
        checked = entry.pop("checked")
        up, down = entry.pop("dropped")
        switch = Switch(**entry, dropped=((up[0], up[1]), (down[0], down[1])))
        right = checked is True and switch.worst <= switch.bound and switch.data in DATA
    except (ValueError, TypeError, KeyError, AttributeError, IndexError) as error:
        raise BadRecord(f"not a switch: {line[:80]!r}: {error}") from error
    if not right:
        raise BadRecord(
            f"{switch.data}, {switch.switches}: an error of {switch.worst:.2e}, bound {switch.bound:.2e}"
        )
    return switch


def described(switch: Switch) -> str:
    """The active switches, with their numbers."""
    (up, down), each = switch.dropped, switch.each
    text = switch.switches
    if any(up):
        text += f" ({up[0]} and {up[1]})"
    if any(down):
        text += f" ({down[0]} and {down[1]})"
    return text + (f": {each} in a number" if each > 1 else "")


def table(switches: Sequence[Switch]) -> list[str]:
    """A table for each prime and kind of data; the first row of each has every switch off."""
    lines = []
    heads = ["on", "bytes up", "in whole words", "bytes down", "encrypt, ms", "decrypt, ms"]
    heads += ["server reads, ms", "writes, ms", "bits, worst", "bound"]
    for size in sorted({switch.bits for switch in switches}):
        for data, title in DATA.items():
            own = [switch for switch in switches if (switch.bits, switch.data) == (size, data)]
            if not own:
                continue
            lines += [f"### {size} bits, {title}: {own[0].count:,}", ""]
            rows = []
            for row in own:
                cells = [
                    described(row),
                    f"{row.bytes_up:,}",
                    f"{row.bytes_up_words:,}",
                    f"{row.bytes_down:,}",
                ]
                cells += [
                    f"{1e3 * value:.2f}" for value in (row.encrypt_s, row.decrypt_s, row.read_s, row.answer_s)
                ]
                cells += [bits(row.worst), bits(row.bound)]
                rows.append(cells)
            lines += [*markdown(heads, rows), ""]
    return lines
