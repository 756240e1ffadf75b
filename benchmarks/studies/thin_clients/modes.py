"""Table 3 of the boosted-deflation paper: ways to send numbers, and what each costs."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from harness.pages.table import markdown
from harness.record import BadRecord

TIMES = ("encrypt_s", "decrypt_s", "server_s", "bootstrap_s")


@dataclass(frozen=True)
class Claim:
    """A row of the paper's table: milliseconds, megabytes, and its server, an accelerator."""

    encrypt_ms: float
    decrypt_ms: float
    up_mb: float
    down_mb: float
    server_ms: float


PAPER = {
    "plain": Claim(204.3, 41.2, 28.0, 0.98, 0.0),
    "deflate": Claim(183.3, 14.2, 28.0, 0.98, 5.2),
    "boost": Claim(52.2, 41.2, 0.98, 0.98, 15.3),
    "naive": Claim(93.2, 14.2, 4.90, 0.98, 19.7),
    "boosted_deflation": Claim(28.2, 14.2, 0.98, 0.98, 15.1),
}

PAPER_RATIO = 0.72
"""Small bootstrapping to a full one, in the caption of the paper's figure 7."""

PAPER_CPU_S = (9.7, 1.07)
"""Seconds of a full bootstrapping and of its slots_to_coeffs on the paper's processor, section 3.6."""

NAMES = {
    "plain": "plain",
    "deflate": "deflate only",
    "boost": "boost only",
    "boost_low": "boost only, slots_to_coeffs first",
    "naive": "both, naively",
    "boosted_deflation": "boosted deflation",
}


@dataclass(frozen=True)
class Mode:
    """One mode as it was measured; medians."""

    name: str
    values: str
    log_n: int
    numbers: int
    primes: int
    bytes_up: int
    bytes_down: int
    key_bytes: int
    levels: int
    worst: float
    mean: float
    bound: float
    threads: int
    encrypt_s: float
    decrypt_s: float
    server_s: float
    bootstrap_s: float | None


def parse(line: str, values: str) -> Mode:
    """A line of the program for `values`, real or complex.

    Raises:
        BadRecord: it is malformed, or the answer was not within its bound.
    """
    try:
        entry = json.loads(line)
        times = {name: list(entry.pop(name)) for name in TIMES}
        checked, name = entry.pop("checked"), entry.pop("mode")
        bootstrap = times.pop("bootstrap_s")
        medians = {key: statistics.median(seconds) for key, seconds in times.items()}
        bootstrap_s = statistics.median(bootstrap) if bootstrap else None
        mode = Mode(name=name, values=values, **entry, **medians, bootstrap_s=bootstrap_s)
        right = checked is True and mode.worst <= mode.bound
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise BadRecord(f"not a mode: {line[:80]!r}: {error}") from error
    if not right:
        raise BadRecord(f"{mode.name}: an error of {mode.worst:.2e}, bound {mode.bound:.2e}")
    if mode.name not in NAMES:
        raise BadRecord(f"there is no mode {mode.name!r}")
    return mode


def bits(error: float) -> str:
    """Bits after the point that an error leaves."""
    return f"{-math.log2(error):.1f}" if error > 0 else "all"


def table(modes: Sequence[Mode]) -> list[str]:
    """The modes in the paper's columns, each with the paper's figure after ours."""
    columns = ["mode", "encrypt, ms", "paper", "decrypt, ms", "paper", "up, MB", "paper", "down, MB", "paper"]
    columns += ["server, s", "paper, ms", "levels", "bits, worst", "mean", "bound"]
    rows = []
    for mode in modes:
        claim = PAPER.get(mode.name)
        pairs = [
            (f"{mode.encrypt_s * 1e3:.2f}", claim and f"{claim.encrypt_ms}"),
            (f"{mode.decrypt_s * 1e3:.2f}", claim and f"{claim.decrypt_ms}"),
            (f"{mode.bytes_up / 1e6:.3f}", claim and f"{claim.up_mb}"),
            (f"{mode.bytes_down / 1e6:.3f}", claim and f"{claim.down_mb}"),
            (f"{mode.server_s:.3f}", claim and f"{claim.server_ms}"),
        ]
        cells = [cell or "-" for pair in pairs for cell in pair]
        cells.append(str(mode.levels))
        cells += [bits(error) for error in (mode.worst, mode.mean, mode.bound)]
        rows.append([NAMES[mode.name], *cells])
    return markdown(columns, rows)


def ratios(modes: Sequence[Mode]) -> list[str]:
    """Ratios of the small bootstrapping to full ones, and of the client's plain work to that of boosted
    deflation.
    """
    ratios = {mode.name: mode for mode in modes}
    small = ratios["boosted_deflation"].bootstrap_s
    lines = []
    for name, order in (("boost", "mod_raise first"), ("boost_low", "slots_to_coeffs first")):
        full = ratios[name].bootstrap_s
        if small and full:
            quotient = f"{small:.3f} s / {full:.3f} s = {small / full:.1%}"
            lines.append(f"* small bootstrapping to a full one, {order}: {quotient}")
    whole, last = PAPER_CPU_S
    lines.append(
        f"* the paper says {PAPER_RATIO:.0%}; without its slots_to_coeffs its own bootstrapping of {whole} s "
        f"would take {1 - last / whole:.0%}"
    )
    plain, both = ratios["plain"], ratios["boosted_deflation"]
    for what, ours, paper in (
        ("encryption", plain.encrypt_s / both.encrypt_s, 204.3 / 28.2),
        ("decryption", plain.decrypt_s / both.decrypt_s, 41.2 / 14.2),
        ("bytes up", plain.bytes_up / both.bytes_up, 28.0 / 0.98),
    ):
        lines.append(f"* {what}, plain to boosted deflation: {ours:.1f} (paper: {paper:.1f})")
    return lines
