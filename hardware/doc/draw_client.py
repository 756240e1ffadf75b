"""Draws client_timeline.svg from the traces of `pytest hardware/dv -k traces`, and client_blocks.svg."""

import json
from html import escape
from pathlib import Path

HERE = Path(__file__).parent
TRACES = HERE.parent / "build/traces"
LANES = ("input", "samplers", "expander", "x B + A", "butterflies", "M0", "M1", "M2", "output")
COLOURS = {"input": "#7aa6d8", "samplers": "#e0a458", "expander": "#e0a458", "x B + A": "#9bc08a",
           "butterflies": "#c98bb9", "output": "#7aa6d8"}  # fmt: skip
WRITTEN, WIPED = "#9a9ad0", "#dddddd"
DEGREE = 4096


def svg(width: int, height: int, parts: list[str]) -> str:
    """A picture with a white ground."""
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" font-family="sans-serif" font-size="12">'
    )
    marker = (
        '<defs><marker id="a" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
        'orient="auto-start-reverse"><path d="M0 0L8 4L0 8z" fill="#444"/></marker></defs>'
    )
    ground = f'<rect width="{width}" height="{height}" fill="white"/>'
    return "\n".join([head, marker, ground, *parts, "</svg>", ""])


def text(x: float, y: float, content: str, **attributes: object) -> str:
    """A line of text."""
    extra = "".join(f' {key.replace("_", "-")}="{value}"' for key, value in attributes.items())
    return f'<text x="{x:.1f}" y="{y:.1f}"{extra}>{escape(content)}</text>'


def timeline() -> str:
    """Both operations on one scale, one lane a part."""
    left, lane, unit = 100, 24, 130.0
    parts: list[str] = []
    top = 30
    for name in ("encryption", "decryption"):
        trace = json.loads((TRACES / f"client_{name}.json").read_text(encoding="utf-8"))
        cycles = trace["cycles"]
        parts.append(text(8, top, f"{name}, N = 4096: {cycles} cycles", font_weight="bold"))
        top += 12
        bottom = top + lane * len(LANES)
        for tick in range(cycles // DEGREE + 1):
            x = left + tick * unit
            parts.append(f'<path d="M{x:.1f} {top}V{bottom + 4}" stroke="#bbb" stroke-dasharray="2 3"/>')
            parts.append(
                text(x, bottom + 16, f"{tick} N" if tick else "0", text_anchor="middle", fill="#555")
            )
        for row, label in enumerate(LANES):
            y = top + row * lane
            parts.append(text(left - 8, y + 16, label, text_anchor="end"))
            for what, first, last in trace["lanes"].get(label, []):
                x, width = left + first * unit / DEGREE, max((last + 1 - first) * unit / DEGREE, 1)
                colour = COLOURS.get(label) or (WRITTEN if what == "written" else WIPED)
                parts.append(
                    f'<rect x="{x:.1f}" y="{y + 3}" width="{width:.1f}" height="{lane - 6}" fill="{colour}" '
                    'stroke="#555" stroke-width="0.5"/>'
                )
                if width > 6 * len(what):
                    parts.append(text(x + width / 2, y + 16, what, text_anchor="middle"))
        top = bottom + 50
    return svg(int(left + 6 * unit), top - 22, parts)


def box(x: int, y: int, width: int, height: int, lines: list[str], colour: str) -> str:
    """A labelled box; the first line is its name."""
    shape = f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="4" fill="{colour}" stroke="#444"/>'
    start = y + height / 2 + 4 - 8 * (len(lines) - 1)
    labels = [
        text(
            x + width / 2,
            start + 16 * i,
            line,
            text_anchor="middle",
            **({} if i else {"font_weight": "bold"}),
        )
        for i, line in enumerate(lines)
    ]
    return shape + "".join(labels)


def arrow(path: str, both: bool = False) -> str:
    """A path with a head, or two."""
    start = ' marker-start="url(#a)"' if both else ""
    return f'<path d="{path}" fill="none" stroke="#444" marker-end="url(#a)"{start}/>'


def blocks() -> str:
    """The parts and what flows between them."""
    sampler, memory, arithmetic, shell = "#f3dfc1", "#dcdcf0", "#dcebd5", "#d7e4f3"
    parts = [
        box(20, 20, 150, 60, ["registers", "AXI4-Lite"], shell),
        box(20, 120, 150, 60, ["3 x ChaCha stream", "20 or 8 rounds"], sampler),
        box(220, 20, 150, 40, ["mask v"], sampler),
        box(220, 70, 150, 40, ["errors e0, e1"], sampler),
        box(220, 140, 150, 60, ["uniform half a", "transposed, retried"], sampler),
        box(
            430,
            70,
            170,
            130,
            ["passes", "x B + A", "1 multiplier, 1 a cycle", "range, frame checks"],
            arithmetic,
        ),
        box(680, 50, 130, 40, ["input check", "s_axis"], shell),
        box(680, 150, 130, 40, ["output FIFO", "m_axis"], shell),
        box(220, 290, 150, 80, ["twiddle factors", "2 tables, 4 products", "one set for all"], arithmetic),
        *(box(430, 250 + 56 * m, 170, 46, [f"NTT core {m}", "4 butterflies"], arithmetic) for m in range(3)),
        *(box(680, 250 + 56 * m, 130, 46, [f"M{m}", "N x 60 bits"], memory) for m in range(3)),
        arrow("M95 80V120"),
        text(100, 104, "entropy, seed"),
        arrow("M170 140H195V40H220"),
        arrow("M195 90H220"),
        arrow("M170 165H220"),
        arrow("M370 40H400V100H430"),
        '<path d="M370 90H400" stroke="#444"/>',
        arrow("M370 170H430"),
        arrow("M680 70H640V100H600"),
        arrow("M600 170H680"),
        arrow("M370 330H400V273H430"),
        arrow("M400 329H430"),
        arrow("M400 330V385H430"),
        *(arrow(f"M600 {273 + 56 * m}H680", both=True) for m in range(3)),
        arrow("M515 200V222H830V273H810", both=True),
        arrow("M830 260V329H810"),
        arrow("M830 320V385H810"),
        arrow("M870 70H810"),
        arrow("M810 170H870"),
    ]
    return svg(880, 430, parts)


def main() -> None:
    """Writes both pictures."""
    (HERE / "client_blocks.svg").write_text(blocks(), encoding="utf-8")
    (HERE / "client_timeline.svg").write_text(timeline(), encoding="utf-8")


if __name__ == "__main__":
    main()
