"""Fraudulent addresses."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from gallery.entry import Array, Case, Entry
from gallery.trees import Tree, regressor

CALIBRATION, TESTS = 3000, 16
WORDS = """
account amazon apple bank blog book business chase cloud coffee community confirm crypto data
docs download drive dropbox email event facebook files free garden gift github google guide
health help home image info invoice library login map media member microsoft music netflix news
office online page park password pay paypal photo post prize python reset review school search
secure service shop sign software sport store support team travel university update verify video
wallet weather web wiki win world
""".split()  # noqa: SIM905 (a line for each would be long)
ENDS = """
com org net edu de fr co.uk io gov info xyz top tk ru click online site shop cn live app dev
""".split()  # noqa: SIM905 (a line for each would be long)


HOSTS = "bit.ly tinyurl.com sites.google.com github.io blogspot.com weebly.com xn--pypal-4ve.com".split()  # noqa: SIM905


def addresses(count: int, seed: int) -> list[str]:
    """Addresses made of frequent words: plain ones, and suspicious ones with digits, hyphens, subdomains,
    hosts of others, ports, numbers as hosts, and brands before other domains; paths and queries with all
    kinds of signs."""
    rng = np.random.default_rng(seed)

    def chance(share: float) -> bool:
        return bool(rng.random() < share)

    def word() -> str:
        chosen = str(rng.choice(WORDS))
        return chosen.capitalize() if chance(0.05) else chosen

    def words(most: int, sign: str) -> str:
        return sign.join(word() for _ in range(rng.integers(1, most + 1)))

    def host(suspicious: bool) -> str:
        if suspicious and chance(0.1):
            return ".".join(str(part) for part in rng.integers(1, 255, 4))
        if suspicious and chance(0.15):
            own = str(rng.choice(HOSTS))
            return own if chance(0.4) else f"{words(2, '-')}.{own}"
        name = words(4, "-") if suspicious and chance(0.7) else words(2, "")
        if suspicious and chance(0.4):
            name += str(rng.integers(1, 9999))
        for _ in range(rng.integers(0, 4) if suspicious else chance(0.6)):
            name = f"{words(2, '-') + str(rng.choice(['', '', '24'])) if suspicious else 'www'}.{name}"
        return f"{name}.{rng.choice(ENDS[8:] if suspicious else ENDS[:12])}"

    def segment(suspicious: bool) -> str:
        signs = "-_~+;@!%" if suspicious and chance(0.3) else "-"
        long = words(8, str(rng.choice(list(signs)))) if chance(0.3) else word()
        return long.replace("%", "%20") + (str(rng.integers(10**6)) if chance(0.15) else "")

    def query(suspicious: bool) -> str:
        if suspicious and chance(0.3):
            return f"redirect=http://{host(False)}/{word()}"
        return "&".join(
            f"{word()}={rng.bytes(int(rng.integers(1, 30))).hex()}" for _ in range(rng.integers(1, 5))
        )

    def address() -> str:
        suspicious = chance(0.5)
        path = "/".join(segment(suspicious) for _ in range(rng.integers(0, 6)))
        if suspicious and chance(0.15):
            path = f"wp-{rng.choice(['content', 'admin', 'includes'])}/{path}"
        if chance(0.3):
            path += rng.choice([".html", ".php", "/"])
        if chance(0.25):
            path += f"?{query(suspicious)}"
        port = f":{rng.integers(1024, 9999)}" if suspicious and chance(0.05) else ""
        return f"http{'' if suspicious and chance(0.5) else 's'}://{host(suspicious)}{port}/{path}"

    return [address() for _ in range(count)]


def to_tree(tree: dict[str, Any], scale: float) -> Tree:
    """A tree of the file: leaves are the complements of their numbers."""
    inner, leaves = len(tree["f"]), len(tree["lv"])

    def number(child: int) -> int:
        return int(child) if child >= 0 else inner + ~child

    none = [-1] * leaves
    return Tree(
        features=tree["f"],
        thresholds=tree["t"],
        left=[number(child) for child in tree["l"]] + none,
        right=[number(child) for child in tree["r"]] + none,
        missing_left=[threshold >= 0 for threshold in tree["t"]],  # a missing value counts as 0
        values=[0.0] * inner + [scale * value for value in tree["lv"]],
    )


def load(folder: Path, count: int = TESTS) -> Case:
    """The model for addresses alone, with Platt's scaling in its leaves."""
    sys.path.insert(0, str(folder))
    from fraudurl.lexical import extract  # type: ignore[import-not-found]
    from fraudurl.model import Model  # type: ignore[import-not-found]

    path = folder / "fraudurl" / "data" / "model_safe.json"
    content, model = json.loads(path.read_text()), Model(str(path))
    scaling, bounds = content["calibration"], content["thresholds"]
    assert scaling["type"] == "platt"
    assert not any(any(tree["m"]) for tree in content["trees"])
    trees = [to_tree(tree, scaling["a"]) for tree in content["trees"]]
    base = scaling["a"] * content["init_score"] + scaling["b"]

    def vectors(count: int, seed: int) -> Array:
        return np.array([model.vector(extract(each)) for each in addresses(count, seed)])

    def probabilities(samples: Array) -> Array:
        return np.array([[model.calibrate(model.raw(list(each)))] for each in samples])

    calibration, tests = vectors(CALIBRATION, 1), vectors(2 * count, 2)
    # Clients refuse samples beyond the calibration data in features with thresholds there.
    inside = ((tests >= calibration.min(axis=0)) & (tests <= calibration.max(axis=0))).all(axis=1)
    return Case(
        regressor(trees, len(content["features"]), base, "BRANCH_LEQ"),
        calibration,
        tests[inside][:count],
        clear=probabilities,
        decide=lambda outputs: np.digitize(outputs[:, 0], [bounds["legit"], bounds["fraud"]]),
    )


ENTRY = Entry(
    title="fraudulent addresses by 83 features of the text; 400 trees of 15 leaves",
    licence="MIT, public suffix list MPL-2.0",
    data="made addresses, without those beyond the calibration data; labels are the package's three verdicts",
    load=load,
)
