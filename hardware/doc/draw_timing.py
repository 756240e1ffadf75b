"""Draws doc/key_switch_timing.svg from what passed the ports in simulations.

python hardware/doc/draw_timing.py TRACE...

TRACE is a `trace.json` of the test `matches_the_rust_engine`, below hardware/build/results: one panel each.
"""

import json
import sys
from pathlib import Path
from typing import Any

WIDTH, LEFT, ROW, TOP = 1200, 130, 26, 34
COLOURS = ("#4477aa", "#ee6677", "#228833", "#ccbb44")
NAMES = {
    "digit": "input", "key_a": "key a", "key_b": "key b", "addend_a": "addend a", "addend_b": "addend b",
    "a": "result a", "b": "result b",
}  # fmt: skip
SWITCHES = 2


def panel(trace: dict[str, Any], y: int) -> tuple[list[str], int]:
    """One row a port, one bar a polynomial, one colour a key switch; the height it takes."""
    ports = {label: trace["ports"][name] for name, label in NAMES.items()}
    frames = [frame for port in ports.values() for frame in port]
    start, end = min(a for a, _ in frames), max(b for _, b in frames)
    degree, slots, bottom = trace["log_n"], trace["slots"], y + TOP + ROW * len(ports)
    lanes = 1 << -(-degree // 4)
    slot = (1 << degree) // lanes
    scale = (WIDTH - LEFT - 20) / (end - start)
    title = (
        f"L = {trace['level']}, alpha = {trace['alpha']}, N = 2^{degree}, {lanes} lanes, as "
        f"simulated: {SWITCHES} switches; cycles from the first beat, a line every {slots} slots of {slot:,}"
    )
    lines = [f'<text x="{LEFT}" y="{y + 20}">{title}</text>']
    for cycle in range(0, end - start, slots * slot):
        x = LEFT + cycle * scale
        lines.append(f'<line x1="{x:.1f}" y1="{y + TOP}" x2="{x:.1f}" y2="{bottom}" stroke="#999"/>')
        lines.append(f'<text x="{x:.1f}" y="{bottom + 16}" text-anchor="middle">{cycle:,}</text>')
    for row, (name, port) in enumerate(ports.items()):
        top = y + TOP + ROW * row + 4
        lines.append(f'<text x="{LEFT - 10}" y="{top + 13}" text-anchor="end">{name}</text>')
        for i, (a, b) in enumerate(port):
            x, width = LEFT + (a - start) * scale, (b - a) * scale
            lines.append(
                f'<rect x="{x:.1f}" y="{top}" width="{width:.1f}" height="17" '
                f'fill="{COLOURS[i * SWITCHES // len(port)]}" stroke="white"/>'
            )
    return lines, bottom + 30 - y


def main() -> None:
    """A panel for every trace, one below another."""
    lines: list[str] = []
    height = 0
    for path in sys.argv[1:]:
        more, tall = panel(json.loads(Path(path).read_text(encoding="ascii")), height)
        lines += more
        height += tall
    size = f'viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}"'
    picture = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size}>',
        '<g font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
        *lines, "</g>", "</svg>", "",
    ]  # fmt: skip
    (Path(__file__).parent / "key_switch_timing.svg").write_text("\n".join(picture), encoding="ascii")


if __name__ == "__main__":
    main()
