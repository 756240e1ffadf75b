"""What an answer of a tree ensemble takes, alone and in a batch.

    cd benchmarks && python -m studies.trees [forest fraudurl] [--batch 8] [--labels 1000] [--out FOLDER]

`forest` is a forest of 100 trees of depth 8 on scikit-learn's breast cancer data, tested on the data and on
random mixtures of two of its samples. `boosting` has the shape of fraudurl 1.0.1, 400 trees of at most 15
leaves on 83 features, fitted to made data. `fraudurl` and `voice2gender` are published packages, which the
gallery of `examples` installs. Thresholds are private unless `--thresholds public`. Labels of encrypted
answers, of one batch or of `--labels` samples, are compared with those of the quantised model in the clear,
and those in turn with the model's own on a thousand samples. Times are of the evaluation, without keys and
encoding. On a machine that others use, compare processor times. Labels are written batch by batch, and a
batch that has them is left out, so the command can be stopped and given again.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

import keywright as kw
import numpy as np
from harness.folders import HERE, record_folder
from harness.measurement.clock import Seconds, timed
from keywright.compiler.front_ends.model_source import to_source
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.model_selection import train_test_split

sys.path.append(str(HERE.parent / "examples"))

LABELS = 1000
MADE, FEATURES = 6000, 83
HEADINGS = (
    "ensemble", "thresholds", "bits", "samples at a time", "levels", "compiling, s", "keys, MB",
    "wall, s a sample", "processor, s a sample", "sent, kB", "returned, kB", "peak, GB",
    "same labels as quantised", "same labels as the model",
)  # fmt: skip

Array = NDArray[Any]


@dataclass(frozen=True)
class Row:
    """A batch of an ensemble; the seconds of every evaluation."""

    name: str
    thresholds: str
    bits: int
    batch: int
    levels: int
    compile_s: float
    key_bytes: int
    wall_s: list[float]
    processor_s: list[float]
    sent_bytes: int
    returned_bytes: int
    peak_bytes: int
    load: float
    samples: int
    same_quantised: float
    same_model: float
    checked: int


@dataclass(frozen=True)
class Subject:
    """An ensemble.

    Attributes:
        model: what `keywright.compile` takes.
        typical, tests: calibration samples and others.
        label: labels of a compiled model's scores.
        own: the model's own labels of samples.
    """

    model: Any
    typical: Array
    tests: Array
    label: Callable[[kw.Model, Array], Array]
    own: Callable[[Array], Array]


def label(compiled: kw.Model, scores: Array) -> Array:
    """Labels of an estimator."""
    return np.asarray(compiled.answers(scores)["label"])


def forest() -> Subject:
    """The forest."""
    samples, labels = load_breast_cancer(return_X_y=True)
    typical, tests, known, _ = train_test_split(samples, labels, test_size=0.3, random_state=0)
    model = RandomForestClassifier(100, max_depth=8, random_state=0).fit(typical, known)
    rng = np.random.default_rng(0)
    pairs, shares = rng.integers(len(samples), size=(2, LABELS)), rng.uniform(size=(LABELS, 1))
    mixed = shares * samples[pairs[0]] + (1 - shares) * samples[pairs[1]]
    return Subject(model, typical, np.concatenate((tests, typical, mixed)), label, model.predict)


def boosting() -> Subject:
    """The boosting on half counts and half continuous features."""
    rng = np.random.default_rng(0)
    counts = np.round(rng.gamma(1, 5, size=(MADE, FEATURES)))
    samples = np.where(np.arange(FEATURES) % 2, counts, rng.normal(size=(MADE, FEATURES)))
    scores = samples / samples.std(axis=0) @ rng.normal(size=FEATURES)
    labels = (scores - np.median(scores) + 3 * rng.normal(size=MADE) > 0).astype(int)
    model = HistGradientBoostingClassifier(
        max_iter=400, max_leaf_nodes=15, learning_rate=0.05, early_stopping=False, random_state=0
    )
    half = MADE // 2
    model.fit(samples[:half], labels[:half])
    return Subject(model, samples[:half], samples[half:], label, model.predict)


def published(name: str) -> Callable[[], Subject]:
    """An ensemble of the gallery."""

    def subject() -> Subject:
        from gallery.entry import entry
        from gallery.packages import install

        case = entry(name).load(install(name), LABELS)

        def label(compiled: kw.Model, scores: Array) -> Array:
            outputs = next(iter(compiled.answers(scores).values()), scores)
            return np.asarray(case.decide(np.reshape(outputs, (len(scores), -1))))

        return Subject(
            case.model, case.calibration, case.tests, label, lambda x: case.decide(case.outputs(x))
        )

    return subject


ENSEMBLES = {"forest": forest, "boosting": boosting} | {
    name: published(name) for name in ("fraudurl", "voice2gender")
}


def in_batches(labels: Callable[[Array], Array], samples: Array, count: int, path: Path) -> Array:
    """Labels of samples, but for the rest of the last batch. Those of a file are of batches evaluated before,
    and others are added to it."""
    lines = path.read_text().splitlines() if path.exists() else []
    ready = {line["first"]: line["labels"] for line in map(json.loads, lines)}
    firsts = range(0, len(samples) - count + 1, count)
    with path.open("a") as file:
        for first in firsts:
            if first not in ready:
                ready[first] = labels(samples[first : first + count]).tolist()
                file.write(json.dumps({"first": first, "labels": ready[first]}) + "\n")
                file.flush()
    return np.concatenate([ready[first] for first in firsts])


def measure(name: str, options: argparse.Namespace, batch: int, path: Path) -> Row:
    """Compile, make keys, evaluate a batch several times, decrypt and compare.

    Args:
        path: the file of encrypted labels.
    """
    subject = ENSEMBLES[name]()
    model, typical, tests = subject.model, subject.typical, subject.tests
    choices = {"thresholds": options.thresholds, "bins": options.bins}
    compiled, compiling = timed(kw.compile, model, typical, batch=batch, **choices)
    program, client, server = compiled.program, compiled.client(), compiled.server()
    keys = client.keys()
    server.load_keys(keys)
    count = max(batch, 1)
    message = client.encrypt(tests[:count])
    answer = server.run(message)  # encodes the diagonals
    times: list[Seconds] = []
    for _ in range(options.runs):
        answer, seconds = timed(server.run, message)
        times.append(seconds)

    def labels(samples: Array) -> Array:
        return subject.label(compiled, client.decrypt(server.run(client.encrypt(samples))))

    plaintext = in_batches(labels, tests[: max(options.labels, count)], count, path)
    checked = tests[: max(LABELS, len(plaintext))]
    # The graph of the program, which is many times faster than its rotations in the clear.
    graph = kw.compiler.approximate(to_source(model), kw.compiler.Fit(calibration=typical, **choices)).graph
    assert program.input.steps.binning is not None
    bits = program.input.steps.binning.apply(checked)
    scores = np.concatenate([values[graph.output] for _, values in graph.runs(bits)])
    quantised = subject.label(compiled, scores)
    return Row(
        name, options.thresholds, program.input.steps.binning.bits, batch, program.depth,
        compiling.wall, len(keys), [each.wall / count for each in times],
        [each.cpu / count for each in times], len(message), len(answer),
        resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024, os.getloadavg()[0], len(plaintext),
        float((plaintext == quantised[: len(plaintext)]).mean()),
        float((quantised == subject.own(checked)).mean()), len(checked),
    )  # fmt: skip


def table(rows: list[Row]) -> list[str]:
    """The rows as a table."""
    lines = [f"| {' | '.join(HEADINGS)} |", f"|{'---|' * len(HEADINGS)}"]
    for row in rows:
        cells = [
            row.name, row.thresholds, row.bits, row.batch, row.levels, f"{row.compile_s:.0f}",
            f"{row.key_bytes / 1e6:.0f}", spread(row.wall_s), spread(row.processor_s),
            f"{row.sent_bytes / 1e3:.0f}", f"{row.returned_bytes / 1e3:.0f}", f"{row.peak_bytes / 1e9:.1f}",
            f"{row.same_quantised:.1%} of {row.samples}", f"{row.same_model:.1%} of {row.checked}",
        ]  # fmt: skip
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return lines


def spread(values: list[float]) -> str:
    """Median, least and most."""
    return f"{median(values):.3g} [{min(values):.3g}, {max(values):.3g}]"


def _known(name: str) -> str:
    if name not in ENSEMBLES:
        raise argparse.ArgumentTypeError(f"{name!r} is none of {', '.join(ENSEMBLES)}")
    return name


def main() -> None:
    """Measure and record."""
    parser = argparse.ArgumentParser(
        prog="python -m studies.trees",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "ensembles",
        nargs="*",
        type=_known,
        default=["forest", "boosting"],
        help=f"of {', '.join(ENSEMBLES)} (default: both made here)",
    )
    parser.add_argument("--thresholds", default="private", choices=("private", "public"))
    parser.add_argument("--bins", type=int, help="largest number of bins of a feature")
    parser.add_argument("--batch", type=int, action="append", help="samples at a time (default: 1)")
    parser.add_argument("--labels", type=int, default=0, help="samples to encrypt (default: one batch)")
    parser.add_argument("--threads", type=int, default=2, help="of the engine (default: 2)")
    parser.add_argument("--runs", type=int, default=3, help="evaluations of each (default: 3)")
    parser.add_argument("--out", type=Path, help="folder of the record (default: record/DATE-trees)")
    options = parser.parse_args()
    os.environ.setdefault("RAYON_NUM_THREADS", str(options.threads))
    folder = record_folder(options.out, "trees")
    path = folder / "trees.jsonl"
    with path.open("a") as file:
        for name in options.ensembles:
            for batch in options.batch or [1]:
                labels = folder / f"{name}-{options.thresholds}-{options.bins or 'default'}-{batch}.jsonl"
                row = measure(name, options, batch, labels)
                file.write(json.dumps(asdict(row)) + "\n")
                file.flush()
                print(table([row])[-1], flush=True)
    rows = [Row(**json.loads(line)) for line in path.read_text().splitlines()]
    (folder / "table.md").write_text("\n".join(table(rows)) + "\n")


if __name__ == "__main__":
    main()
