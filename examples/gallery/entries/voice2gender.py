"""Voices of women and men."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from gallery.entry import Array, Case, Entry
from gallery.trees import Tree, regressor

CALIBRATION, TESTS = 400, 16
RATE, SECONDS = 16000, 1.0


class Booster:
    """In place of XGBoost's, which the package fills with its model's JSON form."""

    def load_model(self, data: bytearray) -> None:
        """Keep the model."""
        self.learner = json.loads(bytes(data))["learner"]


def voices(count: int, seed: int) -> tuple[list[bytes], Array]:
    """Vowels as 16-bit samples at 16 kHz: pulses with a pitch that rises and falls, through three formants;
    and whether the pitch is a woman's, above 165 Hz. Every second voice is one."""
    rng = np.random.default_rng(seed)
    women = np.arange(count) % 2 == 0
    times = np.arange(int(RATE * SECONDS)) / RATE
    sounds = []
    for woman in women:
        pitch = rng.uniform(165, 255) if woman else rng.uniform(85, 150)
        bend = 1 + rng.uniform(0, 0.08) * np.sin(2 * np.pi * rng.uniform(2, 6) * times)
        phase = np.cumsum(pitch * bend) / RATE
        pulses = np.diff(np.floor(phase), prepend=0.0) + 0.01 * rng.normal(size=len(times))
        spectrum, frequencies = np.fft.rfft(pulses), np.fft.rfftfreq(len(times), 1 / RATE)
        formants = np.array([rng.uniform(300, 900), rng.uniform(900, 2300), rng.uniform(2300, 3500)])
        gain = sum(
            1 / (1 + ((frequencies - formant * (1.15 if woman else 1)) / 90) ** 2) for formant in formants
        )
        sound = np.fft.irfft(spectrum * gain, len(times))
        sounds.append((20000 * sound / np.abs(sound).max()).astype("<i2").tobytes())
    return sounds, women


def recordings(count: int, seed: int) -> tuple[list[bytes], Array]:
    """Voices with noise, and in some for a while a hum of 15 to 60 Hz or a hiss, as recordings have them."""
    rng = np.random.default_rng(seed)
    sounds, women = voices(count, seed)
    size, recorded = int(RATE * SECONDS), []
    times, frequencies = np.arange(size) / RATE, np.fft.rfftfreq(size, 1 / RATE)
    for sound in sounds:
        samples = np.frombuffer(sound, "<i2") / 20000
        hiss = np.fft.irfft(
            np.fft.rfft(rng.normal(size=size)) * (frequencies > rng.uniform(2000, 7000)), size
        )
        for other in (np.sin(2 * np.pi * rng.uniform(15, 60) * times), hiss):
            if rng.random() < 0.5:
                loud = rng.uniform(0.3, 1) * (np.abs(times - rng.uniform(0, SECONDS)) < 0.15)
                samples = samples * (loud == 0) + loud * other / np.abs(other).max()
        samples = samples + np.exp(rng.uniform(np.log(0.001), np.log(0.3))) * rng.normal(size=size)
        recorded.append((20000 * samples / np.abs(samples).max()).astype("<i2").tobytes())
    return recorded, women


def to_tree(tree: dict[str, Any]) -> Tree:
    """A tree of XGBoost's JSON form."""
    return Tree(
        features=tree["split_indices"],
        thresholds=tree["split_conditions"],
        left=tree["left_children"],
        right=tree["right_children"],
        missing_left=[bool(each) for each in tree["default_left"]],
        values=tree["split_conditions"],
    )


def load(folder: Path, count: int = TESTS) -> Case:
    """The package's booster and its features, without XGBoost."""
    sys.path.insert(0, str(folder))
    xgboost: Any = ModuleType("xgboost")
    xgboost.Booster = Booster
    sys.modules["xgboost"] = xgboost
    from voice2gender._model import FEATURE_NAMES, booster  # type: ignore[import-not-found]
    from voice2gender._preprocess import extract_features_from_pcm_sequence as extract  # type: ignore[import-not-found]

    del sys.modules["xgboost"]

    def features(sounds: list[bytes]) -> Array:
        features = (extract([sound], RATE) for sound in sounds)
        return np.array([[each[name] for name in FEATURE_NAMES] for each in features], np.float32)

    trees = booster.learner["gradient_booster"]["model"]["trees"]
    parameters = booster.learner["learner_model_param"]
    assert json.loads(parameters["base_score"]) == [0.5]
    calibration = features(recordings(CALIBRATION, 1)[0])
    sounds, women = recordings(2 * count, 2)
    tests = features(sounds)
    # Clients refuse samples beyond the calibration data in features with thresholds there.
    inside = ((tests >= calibration.min(axis=0)) & (tests <= calibration.max(axis=0))).all(axis=1)
    return Case(
        regressor(map(to_tree, trees), int(parameters["num_feature"]), 0.0, "BRANCH_LT"),
        calibration,
        tests[inside][:count],
        decide=lambda outputs: outputs[:, 0] > 0.5,
        truth=women[inside][:count],
    )


ENTRY = Entry(
    title="a woman's voice or a man's by 20 features of its sound; 250 boosted trees",
    licence="MIT",
    data="vowels of pulses through formants, with noise, hum and hiss",
    load=load,
)
