"""Thin clients measured, one thread: `python -m studies.thin_clients`.

Covers table 3 and figure 11 of the boosted-deflation paper, every switch that makes ciphertexts smaller, and
encryption compared with full libraries.

Every answer is decrypted and compared with its bound, and every frame with the original. Writes
`modes.jsonl`, `video.jsonl`, `switches.jsonl`, `peers.jsonl`, `thin.md` and `video.png`.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from harness.console import Console
from harness.folders import HERE, record_folder
from harness.pages.plot import or_say
from harness.pages.table import heading
from harness.programs.schedule import pin
from harness.programs.suite import build, output
from harness.sets import read_set

from studies.thin_clients import modes, peers, switches, video

PARTS = ("modes", "video", "switches", "peers")
PROGRAMS = ("client_modes", "video", "thin_client")
PRESET = "N16_QP1732_L9_S45"


def parse_options() -> argparse.Namespace:
    """Read and check the command line."""
    parser = argparse.ArgumentParser(prog="python -m studies.thin_clients", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a ring without security: a minute")
    parser.add_argument("--only", choices=PARTS, help="one part")
    parser.add_argument("--preset", help=f"a bootstrapping of full slots (default: {PRESET})")
    parser.add_argument("--runs", type=int, default=5, help="timed round trips of each mode (default: 5)")
    parser.add_argument("--rounds", type=int, default=5, help="rounds beside full libraries (default: 5)")
    parser.add_argument("--frames", type=int, default=40, help="frames of each clip (default: 40)")
    parser.add_argument("--film", type=Path, help="of the clips, read by ffmpeg (default: a made scene)")
    parser.add_argument("--out", type=Path, help="folder of the record (default: record/DATE)")
    options = parser.parse_args()
    if options.runs < 1 or options.frames < 1 or options.rounds < 1:
        parser.error("--runs, --rounds and --frames are at least 1")
    options.preset = options.preset or ("quick" if options.quick else PRESET)
    return options


def measure_modes(programs: Path, folder: Path, options: argparse.Namespace) -> list[str]:
    """Run the modes for both kinds of values. Returns their tables.

    Raises:
        SystemExit: the program failed, as it does for a wrong answer.
    """
    text = []
    with (folder / "modes.jsonl").open("w") as raw:
        for values in ("complex", "real"):
            command = [str(programs / "client_modes"), "--preset", options.preset, "--values", values]
            printed = output([*command, "--runs", str(options.runs)]).splitlines()
            raw.writelines(f"{line}\n" for line in printed)
            modes_measured = [modes.parse(line, values) for line in printed]
            heading = f"Table 3, {modes_measured[0].numbers} numbers in a ciphertext ({values} slots)"
            text += [f"## {heading}", "", *modes.table(modes_measured), "", *modes.ratios(modes_measured), ""]
    return text


def measure_video(programs: Path, folder: Path, options: argparse.Namespace) -> list[str]:
    """Run the clips, and draw. Returns the table.

    Raises:
        SystemExit: the program failed, as it does for a frame that came back changed.
    """
    frames = []
    log_n = 11 if options.quick else 16
    said = f"{options.frames} frames of a made scene"
    if options.film is not None:
        said = f"{options.frames} frames of {options.film.name}, in grey, scaled"
    with (folder / "video.jsonl").open("w") as raw, tempfile.TemporaryDirectory() as scratch:
        for width, height in video.RESOLUTIONS.values():
            clip = Path(scratch) / "clip"
            if options.film is None:
                clip.write_bytes(video.clip(width, height, options.frames).tobytes())
            else:
                clip.write_bytes(video.filmed(options.film, width, height, options.frames).tobytes())
            command = [str(programs / "video"), "--clip", str(clip), "--log-n", str(log_n)]
            printed = output([*command, "--width", str(width), "--height", str(height)]).splitlines()
            raw.writelines(f"{line}\n" for line in printed)
            frames += [video.parse(line) for line in printed]
    with or_say("no picture was written"):
        video.draw(frames, f"8-bit frames through a thin client, N = 2^{log_n}", str(folder / "video.png"))
    return ["## Figure 11", "", f"Clips: {said}.", "", *video.table(frames), ""]


def measure_switches(programs: Path, folder: Path, options: argparse.Namespace) -> list[str]:
    """Run every switch. Returns the tables.

    Raises:
        SystemExit: the program failed, as it does for a wrong answer.
    """
    log_n = 11 if options.quick else 16
    command = [str(programs / "thin_client"), "switches", "--log-n", str(log_n), "--runs", str(options.runs)]
    printed = output(command).splitlines()
    (folder / "switches.jsonl").write_text("".join(f"{line}\n" for line in printed))
    switches_measured = [switches.parse(line) for line in printed]
    return [f"## What makes ciphertexts smaller, N = 2^{log_n}", "", *switches.table(switches_measured)]


def measure_peers(programs: Path, folder: Path, options: argparse.Namespace) -> list[str]:
    """Run thin and full encryptions in turns. Returns the table.

    Raises:
        SystemExit: nothing could be measured.
    """
    parameters = read_set("quick" if options.quick else "main", HERE / "sets.json")
    return peers.measure(programs, folder, parameters, options.rounds, options.runs)


def main() -> int:
    """Measure and write. Returns the exit status."""
    options = parse_options()
    console = Console()
    folder = record_folder(options.out)
    programs = build(console, PROGRAMS)
    text = heading(f"Thin clients, {options.preset}", "one thread")
    pin(1)
    measures = (measure_modes, measure_video, measure_switches, measure_peers)
    for part, measure in zip(PARTS, measures, strict=True):
        if options.only in (None, part):
            console.line(f"{part} ...")
            text += measure(programs, folder, options)
    (folder / "thin.md").write_text("\n".join(text))
    print("\n".join(text))
    console.line(f"written: {folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
