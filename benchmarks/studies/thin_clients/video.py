"""Figure 11 of the boosted-deflation paper: frames per second that a camera can encrypt and send."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from harness.pages.plot import new_figure
from harness.record import BadRecord
from numpy.typing import NDArray

RESOLUTIONS = {"QQVGA": (160, 120), "QVGA": (320, 240), "VGA": (640, 480)}

BANDWIDTHS = (12.5, 112.5)
"""MB per second, the least and the most of 5G in the paper."""

PAPER = {
    12.5: {"QQVGA": 144.0, "QVGA": 36.0, "VGA": 6.0},
    112.5: {"QQVGA": 1344.0, "QVGA": 336.0, "VGA": 56.0},
}
"""The paper's boosted deflation: 12 and 112 ciphertexts of 0.98 MB in a second, of 12, 3 and 1/2 frames."""

RISE = 70.0
"""QQVGA frames at 112.5 MB/s of the accelerator that the paper compares with."""


@dataclass(frozen=True)
class Way:
    """One way to send a clip. All its frames were returned unchanged."""

    log_n: int
    width: int
    height: int
    frames: int
    bits: int
    form: str
    pixels: int
    dropped: int
    bytes: int
    frames_each: int
    ciphertexts_each: int
    encrypt_s: float
    decrypt_s: float

    @property
    def name(self) -> str:
        """The name of the way among those of a resolution."""
        if self.form == "compact":
            return f"{self.bits} bits, secret key, {self.dropped} bits dropped"
        return f"{self.bits} bits, {self.form} key, {self.pixels} in a coefficient"

    @property
    def frame_bytes(self) -> float:
        """Bytes for a frame."""
        return self.bytes * self.ciphertexts_each / self.frames_each

    def encrypted(self) -> float:
        """Frames that the client encrypts in a second."""
        return self.frames_each / (self.encrypt_s * self.ciphertexts_each)

    def rate(self, bandwidth: float) -> float:
        """Frames in a second at MB per second: the smaller number of those encrypted and those that the
        network carries.
        """
        return min(self.encrypted(), bandwidth * 1e6 / self.frame_bytes)


def clip(width: int, height: int, frames: int) -> NDArray[np.uint8]:
    """A synthetic scene, (frames, height, width): shapes that move over a gradient, with sensor noise."""
    rng = np.random.default_rng(width)
    y, x = np.mgrid[0:height, 0:width] / height
    scene = np.empty((frames, height, width), np.uint8)
    for index in range(frames):
        time = index / max(frames, 2)
        picture = 90 + 60 * y + 30 * x
        disc = (x - 0.2 - time) ** 2 + (y - 0.5 - 0.3 * np.sin(6 * time)) ** 2 < 0.03
        picture[disc] = 240
        door = (np.abs(x - 1.0) < 0.12) & (y > 0.9 - 0.6 * time)
        picture[door] = 20
        scene[index] = np.clip(picture + rng.normal(0, 4, picture.shape), 0, 255).astype(np.uint8)
    return scene


def filmed(path: Path, width: int, height: int, frames: int) -> NDArray[np.uint8]:
    """The first frames of a film in grey, (frames, height, width), scaled and cropped by ffmpeg.

    Raises:
        SystemExit: there is no ffmpeg, it cannot read the film, or there are too few frames.
    """
    fitted = f"scale={width}:{height}:force_original_aspect_ratio=increase,crop={width}:{height}"
    command = ["ffmpeg", "-v", "error", "-i", str(path), "-vf", fitted, "-frames:v", str(frames)]
    command += ["-f", "rawvideo", "-pix_fmt", "gray", "-"]
    try:
        raw = subprocess.run(command, check=True, capture_output=True).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        said = getattr(error, "stderr", b"").decode(errors="replace").strip()
        raise SystemExit(f"ffmpeg cannot read {path}: {said or error}") from error
    if len(raw) != frames * width * height:
        raise SystemExit(f"{path} has {len(raw) // (width * height)} frames, {frames} are asked for")
    return np.frombuffer(raw, np.uint8).reshape(frames, height, width)


def parse(line: str) -> Way:
    """A line of the program.

    Raises:
        BadRecord: it is malformed, or a returned frame was changed.
    """
    try:
        entry: dict[str, Any] = json.loads(line)
        checked = entry.pop("checked")
        way = Way(**entry)
        times_are_positive = way.encrypt_s > 0 and way.decrypt_s > 0
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise BadRecord(f"not a clip: {line[:80]!r}: {error}") from error
    if checked is not True or not times_are_positive:
        raise BadRecord(f"{way.name}: its frames were not compared, or not timed")
    return way


def resolution(way: Way) -> str:
    """The name of its resolution."""
    return next(name for name, size in RESOLUTIONS.items() if size == (way.width, way.height))


def table(ways: Sequence[Way]) -> list[str]:
    """Every way at every resolution, then the paper's."""
    rates = " | ".join(f"frames/s at {bandwidth} MB/s" for bandwidth in BANDWIDTHS)
    lines = [
        f"| resolution | sent as | frames : ciphertexts | kB a frame | encrypt, ms | decrypt, ms | {rates} |",
        "|---|---|" + "---:|" * (4 + len(BANDWIDTHS)),
    ]
    for way in ways:
        cells = [
            resolution(way),
            way.name,
            f"{way.frames_each} : {way.ciphertexts_each}",
            f"{way.frame_bytes / 1e3:.1f}",
            f"{way.encrypt_s * 1e3:.2f}",
            f"{way.decrypt_s * 1e3:.2f}",
            *(f"{way.rate(bandwidth):.1f}" for bandwidth in BANDWIDTHS),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    for name in RESOLUTIONS:
        table = " | ".join(f"{PAPER[bandwidth][name]:.0f}" for bandwidth in BANDWIDTHS)
        lines.append(f"| {name} | paper | - | - | - | - | {table} |")
    return lines


def draw(ways: Sequence[Way], title: str, path: str) -> None:
    """Write the picture: frames per second of every way and of the paper, logarithmic, for both bandwidths.

    Raises:
        ImportError: matplotlib is not installed.
    """
    names = list(dict.fromkeys(way.name for way in ways))
    figure = new_figure(12, 5)
    width = 0.85 / (len(names) + 1)
    plots = figure.subplots(1, len(BANDWIDTHS), sharey=True)
    for axes, bandwidth in zip(plots, BANDWIDTHS, strict=True):
        for index, name in enumerate([*names, "paper"]):
            rates = [
                PAPER[bandwidth][size] if name == "paper" else rate_of(ways, name, size, bandwidth)
                for size in RESOLUTIONS
            ]
            places = [place + index * width for place in range(len(RESOLUTIONS))]
            axes.bar(places, rates, width, label=name, color="black" if name == "paper" else None)
        if bandwidth == max(BANDWIDTHS):
            axes.plot(
                [0, 0.85], [RISE, RISE], color="black", linestyle=":", label="RISE, as the paper quotes"
            )
        centre = 0.425 - width / 2
        axes.set_xticks([place + centre for place in range(len(RESOLUTIONS))], list(RESOLUTIONS))
        axes.set(title=f"{bandwidth} MB/s", yscale="log")
        axes.grid(axis="y", alpha=0.3)
    plots[0].set_ylabel("frames per second")
    figure.legend(*plots[-1].get_legend_handles_labels(), loc="outside right upper", fontsize="small")
    figure.suptitle(title)
    figure.savefig(path, dpi=120)


def rate_of(ways: Sequence[Way], name: str, size: str, bandwidth: float) -> float:
    """Frames per second of a way at a resolution; 0 if it was not measured there."""
    return next((way.rate(bandwidth) for way in ways if way.name == name and resolution(way) == size), 0.0)
