"""Draws doc/key_switch_timing.svg from what passed the ports in a simulation.

python hardware/doc/draw_timing.py TRACE

TRACE is `trace.json` of the test `switches_one_after_another`, below hardware/build/results.
"""

import json
import sys
from pathlib import Path

WIDTH, LEFT, ROW, TOP = 1200, 150, 34, 40
COLOURS = ("#4477aa", "#ee6677", "#228833", "#ccbb44")
NAMES = {"a": "result a", "b": "result b"}


def main() -> None:
    """One row a port, one bar a polynomial, one colour a key switch."""
    trace = json.loads(Path(sys.argv[1]).read_text(encoding="ascii"))
    ports = {NAMES.get(name, name.replace("_", " ")): frames for name, frames in trace["ports"].items()}
    frames = [frame for port in ports.values() for frame in port]
    start, end = min(a for a, _ in frames), max(b for _, b in frames)
    slot = (1 << trace["log_n"]) >> trace["log_n"] // 4
    scale = (WIDTH - LEFT - 20) / (end - start)
    switches = 3
    height = TOP + ROW * len(ports) + 50
    degree, slots = trace["log_n"], trace["slots"]
    title = (
        f"{switches} key switches, N = 2^{degree}, as simulated; a line every {slots} slots of {slot} cycles"
    )
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}">',
        '<g font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
        f'<text x="{LEFT}" y="20">{title}</text>',
    ]
    for cycle in range(0, end - start, trace["slots"] * slot):
        x = LEFT + cycle * scale
        lines.append(
            f'<line x1="{x:.1f}" y1="{TOP}" x2="{x:.1f}" y2="{TOP + ROW * len(ports)}" stroke="#999"/>'
        )
        lines.append(
            f'<text x="{x:.1f}" y="{TOP + ROW * len(ports) + 18}" text-anchor="middle">{cycle}</text>'
        )
    for row, (name, port) in enumerate(ports.items()):
        y = TOP + ROW * row + 6
        lines.append(f'<text x="{LEFT - 10}" y="{y + 15}" text-anchor="end">{name}</text>')
        for i, (a, b) in enumerate(port):
            colour = COLOURS[i * switches // len(port)]
            x, width = LEFT + (a - start) * scale, (b - a) * scale
            lines.append(
                f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="20" fill="{colour}" stroke="white"/>'
            )
    target = Path(__file__).parent / "key_switch_timing.svg"
    target.write_text("\n".join([*lines, "</g>", "</svg>", ""]), encoding="ascii")


if __name__ == "__main__":
    main()
