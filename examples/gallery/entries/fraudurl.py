"""Fraudulent addresses."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from gallery.entry import Array, Case, Entry
from gallery.trees import Tree, regressor

CALIBRATION, TESTS = 1500, 16
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


def addresses(count: int, seed: int) -> list[str]:
    """Addresses made of frequent words: plain ones and those with digits, hyphens, subdomains, deep paths,
    queries, numbers as hosts and names of brands before other domains."""
    rng = np.random.default_rng(seed)

    def word() -> str:
        return str(rng.choice(WORDS))

    def address() -> str:
        suspicious = rng.random() < 0.5
        host = (
            word()
            + ("-" if suspicious and rng.random() < 0.7 else "")
            + (word() if rng.random() < 0.7 else "")
        )
        if suspicious and rng.random() < 0.4:
            host += str(rng.integers(1, 9999))
        for _ in range(rng.integers(0, 3) if suspicious else rng.random() < 0.6):
            host = f"{word() if suspicious else 'www'}.{host}"
        host = f"{host}.{rng.choice(ENDS[8:] if suspicious else ENDS[:12])}"
        if suspicious and rng.random() < 0.1:
            host = ".".join(str(part) for part in rng.integers(1, 255, 4))
        path = "/".join(word() for _ in range(rng.integers(0, 4)))
        if rng.random() < 0.3:
            path += rng.choice([".html", ".php", "/", f"/{rng.integers(10**6)}"])
        if rng.random() < 0.25:
            path += f"?{word()}={rng.bytes(6).hex()}"
        return f"http{'' if suspicious and rng.random() < 0.5 else 's'}://{host}/{path}"

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

    return Case(
        regressor(trees, len(content["features"]), base, "BRANCH_LEQ"),
        vectors(CALIBRATION, 1),
        vectors(count, 2),
        clear=probabilities,
        decide=lambda outputs: np.digitize(outputs[:, 0], [bounds["legit"], bounds["fraud"]]),
    )


ENTRY = Entry(
    title="fraudulent addresses by 83 features of the text; 400 trees of 15 leaves",
    licence="MIT, public suffix list MPL-2.0",
    data="made addresses; labels are the package's three verdicts",
    load=load,
)
