"""Pictures with figures from records, as SVG without a library, so that a test compares them byte by byte."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from statistics import median

from studies.ledger.records import ROOT, Record, value_of

FOLDER = ROOT / "docs" / "pictures"
WIDTH = 760
OURS, THEIRS, INK, PALE, RED = "#0072B2", "#A0A8B4", "#1b1f24", "#eef3f8", "#B5442B"
FONT = "font-family=\"system-ui, 'Segoe UI', Helvetica, Arial, sans-serif\""
ROW, LABELS, BARS = 26, 220, 190


@dataclass(frozen=True)
class Bar:
    """A bar: what it is of, how long, the figure as it is written, and whether it is ours."""

    label: str
    value: float
    shown: str
    ours: bool


def pictures(records: Mapping[str, Record], figures: Mapping[str, str]) -> dict[Path, str]:
    """The pictures of README and the site, by their files."""
    return {FOLDER / "peers.svg": peers(records), FOLDER / "request.svg": request(figures)}


def peers(records: Mapping[str, Record]) -> str:
    """Bars of a bootstrap's time and keys, beside other libraries."""
    named = {
        "Keywright, 9 levels of 45 bits": "N16_QP1732_L9_S45",
        "Lattigo, 9 of 40": "N16QP1546H192H32",
        "Keywright, 15 levels of 40 bits": "N16_QP1745_L15_S40",
        "poulpy, 17 of 35": "n16_d35_k733_p20_s2c",
    }

    def bootstrap(column: str, unit: float, suffix: str) -> list[Bar]:
        runs = records["bootstraps_27"]
        values = {
            label: median(_number(line, column) for line in runs.select(f"preset: {preset}; threads: 1"))
            / unit
            for label, preset in named.items()
        }
        return [_bar(label, value, f"{value:.1f} {suffix}") for label, value in values.items()]

    panels = {
        "A bootstrap, seconds": bootstrap("median_s", 1, "s"),
        "Its keys, GB": bootstrap("key_bytes", 1e9, "GB"),
    }
    lines = [
        _text(LABELS, 56 + place * ROW, label, anchor="end", size=13) for place, label in enumerate(named)
    ]
    for panel, (title, bars) in enumerate(panels.items()):
        left = LABELS + 10 + panel * (WIDTH - LABELS) / 2
        lines.append(_text(left, 26, title, weight=600))
        most = max(bar.value for bar in bars)
        for place, bar in enumerate(bars):
            y, width = 42 + place * ROW, BARS * bar.value / most
            lines.append(
                f'<rect x="{left:.0f}" y="{y}" width="{width:.1f}" height="19" rx="2" '
                f'fill="{OURS if bar.ours else THEIRS}"/>'
            )
            lines.append(_text(left + 6 + width, y + 14, bar.shown, size=13))
    return _svg(
        "Keywright compared with its peers at N = 2^16 on one thread: shorter is better",
        50 + len(named) * ROW,
        lines,
    )


def request(figures: Mapping[str, str]) -> str:
    """Client, server, and what crosses between them, with the bytes of the demo."""
    boxes = [
        (8, "Client", ["has the data", "and the secret key"], OURS),
        (356, "Server", ["has the model", "and sees only noise"], RED),
    ]
    lines = []
    for x, title, words, colour in boxes:
        lines.append(
            f'<rect x="{x}" y="8" width="156" height="198" rx="8" fill="{PALE}" stroke="{colour}" '
            'stroke-width="2"/>'
        )
        lines.append(_text(x + 78, 38, title, anchor="middle", weight=600, size=18))
        lines += [
            _text(x + 78, 64 + 19 * place, word, anchor="middle", size=14) for place, word in enumerate(words)
        ]
    steps = [
        (112, f"keys, once: {figures['digits.keys']}", True, "makes keys", "keeps them"),
        (
            149,
            f"a request: {figures['digits.sent']}",
            True,
            "encrypts",
            f"computes, {figures['digits.request']}",
        ),
        (186, f"the answer: {figures['digits.received']}", False, "decrypts", "returns a ciphertext"),
    ]
    for y, label, right, left_words, right_words in steps:
        start, end = (172, 346) if right else (348, 174)
        lines.append(
            f'<path d="M{start} {y}H{end}" stroke="{INK}" stroke-width="1.6" marker-end="url(#arrow)"/>'
        )
        lines.append(_text(260, y - 9, label, anchor="middle", size=14, weight=600))
        lines.append(_text(86, y + 5, left_words, anchor="middle", size=14))
        lines.append(_text(434, y + 5, right_words, anchor="middle", size=14))
    arrow = (
        '<defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
        f'orient="auto"><path d="M0 0L8 4L0 8z" fill="{INK}"/></marker></defs>'
    )
    return _svg(
        "What crosses between client and server, with the bytes of keywright demo",
        214,
        [arrow, *lines],
        width=520,
    )


def _bar(label: str, value: float, shown: str) -> Bar:
    return Bar(label, value, shown, label.startswith("Keywright"))


def _number(line: Mapping[str, object], column: str) -> float:
    value = value_of(line, column)
    return value[0] if isinstance(value, list) else value


def _text(x: float, y: float, text: str, *, anchor: str = "start", size: int = 15, weight: int = 400) -> str:
    return (
        f'<text x="{x:.0f}" y="{y:.0f}" {FONT} font-size="{size}" font-weight="{weight}" '
        f'text-anchor="{anchor}" fill="{INK}">{escape(text)}</text>'
    )


def _svg(title: str, height: int, lines: Sequence[str], width: int = WIDTH) -> str:
    size = f'width="{width}" height="{height}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} viewBox="0 0 {width} {height}" role="img">'
    background = f'<rect {size} fill="#ffffff"/>'
    return "\n".join([head, f"<title>{escape(title)}</title>", background, *lines, "</svg>", ""])
