import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from harness.programs.schedule import Measurement
from harness.record import FIELDS, BadRecord
from harness.record import parse as parse_record
from studies.thin_clients import modes, peers, switches, video

SIZES = {"log_n": 16, "numbers": 65536, "bytes_down": 819_280, "key_bytes": 0, "levels": 9, "threads": 1}
ERRORS = {"worst": 2.0**-24, "mean": 2.0**-28, "bound": 2.0**-20, "checked": True}


def mode(name: str, server: float = 3.0, bootstrap: float | None = None, **changes: Any) -> modes.Mode:
    primes = 28 if name in ("plain", "deflate") else 1
    times = {"encrypt_s": [0.02 * primes] * 3, "decrypt_s": [0.01, 0.02, 0.9], "server_s": [server]}
    entry = {"mode": name, "primes": primes, "bytes_up": 780_000 * primes, **SIZES, **ERRORS, **times}
    entry["bootstrap_s"] = [] if bootstrap is None else [bootstrap]
    return modes.parse(json.dumps({**entry, **changes}), "complex")


@pytest.fixture
def all_modes() -> list[modes.Mode]:
    bootstraps = {"boost": 4.0, "boost_low": 3.0, "naive": 4.0, "boosted_deflation": 2.4}
    return [mode(name, bootstrap=bootstraps.get(name)) for name in modes.NAMES]


def test_a_table_has_every_mode_beside_the_paper(all_modes: list[modes.Mode]) -> None:
    lines = modes.table(all_modes)
    assert len(lines) == 2 + len(modes.NAMES)
    assert len({line.count("|") for line in lines}) == 1
    assert lines[2].startswith("| plain | 560.00 | 204.3 | 20.00 | 41.2 | 21.840 | 28.0 | 0.819 | 0.98 |")
    assert lines[2].endswith("| 24.0 | 28.0 | 20.0 |")
    # A row that the paper does not have.
    assert " - | " in lines[2 + list(modes.NAMES).index("boost_low")]


def test_ratios_are_those_of_the_bootstrappings(all_modes: list[modes.Mode]) -> None:
    text = "\n".join(modes.ratios(all_modes))
    assert "2.400 s / 4.000 s = 60.0%" in text
    assert "2.400 s / 3.000 s = 80.0%" in text
    assert "encryption, plain to boosted deflation: 28.0 (paper: 7.2)" in text


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"checked": False}, "an error of"),
        ({"worst": 2.0**-19}, "an error of"),
        ({"worst": None}, "not a mode"),
        ({"mode": "other"}, "no mode"),
        ({"encrypt_s": None}, "not a mode"),
        ({"surplus": 1}, "not a mode"),
    ],
)
def test_a_wrong_mode_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(BadRecord, match=message):
        mode("plain", **changes)


WAY: dict[str, Any] = {
    "log_n": 16,
    "width": 160,
    "height": 120,
    "frames": 40,
    "bits": 60,
    "form": "public",
    "pixels": 5,
    "dropped": 0,
    "bytes": 983_154,
    "frames_each": 17,
    "ciphertexts_each": 1,
    "encrypt_s": 0.002,
    "decrypt_s": 0.001,
    "checked": True,
}


def test_rates_are_those_of_the_slower_of_network_and_client() -> None:
    way = video.parse(json.dumps(WAY))
    assert way.rate(12.5) == pytest.approx(17 * 12.5e6 / 983_154)
    slow = video.parse(json.dumps({**WAY, "encrypt_s": 2.0}))
    assert slow.rate(112.5) == 8.5
    large = video.parse(json.dumps({**WAY, "frames_each": 1, "ciphertexts_each": 5}))
    assert large.frame_bytes == 5 * 983_154
    assert large.encrypted() == 100


def test_the_table_ends_with_the_paper_and_the_picture_is_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    ways = [
        video.parse(json.dumps({**WAY, "width": width, "height": height}))
        for width, height in video.RESOLUTIONS.values()
    ]
    lines = video.table(ways)
    assert len({line.count("|") for line in lines}) == 1
    assert lines[-1] == "| VGA | paper | - | - | - | - | 6 | 56 |"
    video.draw(ways, "title", str(tmp_path / "video.png"))
    assert (tmp_path / "video.png").stat().st_size > 10_000


def test_clips_are_pictures_that_move() -> None:
    scene = video.clip(160, 120, 3)
    assert scene.shape == (3, 120, 160)
    assert scene.dtype == np.uint8
    assert scene.std() > 20
    assert (scene[0] != scene[2]).mean() > 0.5
    assert (video.clip(160, 120, 3) == scene).all()


@pytest.mark.parametrize(
    "changes", [{"checked": False}, {"encrypt_s": 0}, {"form": None, "bits": None, "more": 1}]
)
def test_a_wrong_clip_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(BadRecord):
        video.parse(json.dumps({**WAY, **changes}))


SWITCH: dict[str, Any] = {
    "log_n": 16,
    "bits": 30,
    "data": "full",
    "count": 65536,
    "switches": "none",
    "dropped": [[0, 0], [0, 0]],
    "each": 1,
    "bytes_up": 491_600,
    "bytes_up_words": 524_368,
    "bytes_down": 491_603,
    "encrypt_s": 0.001,
    "decrypt_s": 0.0003,
    "read_s": 0.002,
    "answer_s": 0.001,
    "worst": 2.0**-16,
    "bound": 2.0**-14,
    "checked": True,
}


def test_every_switch_has_a_row() -> None:
    several = {"data": "integers", "switches": "seed, several", "each": 3, "bits": 60}
    dropped = {"switches": "bits dropped", "dropped": [[9, 1], [0, 0]], "bytes_up": 400_000}
    measurements = [switches.parse(json.dumps(SWITCH | changes)) for changes in ({}, dropped, several)]
    lines = switches.table(measurements)
    assert lines[0] == "### 30 bits, a number in every coefficient: 65,536"
    assert "| none | 491,600 | 524,368 | 491,603 | 1.00 | 0.30 | 2.00 | 1.00 | 16.0 | 14.0 |" in lines
    assert any(line.startswith("| bits dropped (9 and 1) | 400,000 |") for line in lines)
    assert any(line.startswith("| seed, several: 3 in a number |") for line in lines)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"checked": False}, "an error of"),
        ({"worst": 2.0**-13}, "an error of"),
        ({"data": "other"}, "an error of"),
        ({"dropped": [[0], [0, 0]]}, "not a switch"),
        ({"surplus": 1}, "not a switch"),
    ],
)
def test_a_wrong_switch_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(BadRecord, match=message):
        switches.parse(json.dumps(SWITCH | changes))


def measured(target: str, turn: int, level: int, time: float) -> Measurement:
    entry: dict[str, Any] = dict.fromkeys(FIELDS, 1)
    entry |= {"library": "x", "version": "1", "work": "encrypt", "backend": "b", "checked": True}
    entry |= {"log_n": 16, "level": level, "median_s": time, "bytes": 1000 * (level + 1)}
    return Measurement(target, turn, parse_record(json.dumps(entry)))


def test_full_encryptions_are_compared_with_all_primes_and_within_rounds() -> None:
    measurements = [
        *(measured("thin-30", turn, 0, time) for turn, time in enumerate([0.001, 0.002, 0.001])),
        *(measured("lattigo", turn, 26, time) for turn, time in enumerate([0.021, 0.042, 0.023])),
        measured("lattigo", 0, 3, 0.004),
        measured("openfhe", 0, 26, 0.019),
    ]
    rows = peers.top(measurements, 27)
    lines = peers.table(rows, 27)
    assert "| thin-30 | 1 | 1.00 ms | 1,000 | - | - |" in lines
    assert "| lattigo | 27 | 23.0 ms | 27,000 | 21x (21-23) | - |" in lines
    assert peers.judgement(rows) == [
        "* lattigo: 21.0 of 20 times, reached",
        "* openfhe: 19.0 of 20 times, not reached",
    ]


def test_a_film_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    nothing = tmp_path / "film.mp4"
    nothing.write_bytes(b"no film")
    with pytest.raises(SystemExit, match="ffmpeg cannot read"):
        video.filmed(nothing, 160, 120, 3)
