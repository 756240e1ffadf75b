"""What the orders of a softmax's products take in whole programs: levels, bootstraps, keys and seconds.

    cd benchmarks && python -m studies.attention.layouts.orders --model FOLDER --sentences FILE
        [--tokens 32] [--batch 1] [--calibration 100] [--join] [--out FOLDER]

The encoder of a BERT is compiled in each order that `keywright.compiler.graph.commuting` has, and a row is
written for each program, with the bytes in memory and the predicted seconds of its plans of keys. Without a
limit on keys, the compiler takes the program with the fewest seconds, or with the smallest keys of those that
take nearly as few.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

from harness.folders import record_folder
from keywright import compiler
from keywright.compiler import Program
from keywright.model.parameters.parameter_choice import Compilation
from keywright.plan.cost.calibration import stored_model
from keywright.plan.keys.time_prediction import predict_plan
from keywright.program.arrays import Vector

from studies.attention.inputs.encoder import Encoder, embedded, tensors
from studies.attention.inputs.sentences import Labelled
from studies.attention.process import append, command

ORDERS = ("factor behind the sum", "sums at every place", "merged")


def row(program: Program) -> dict[str, object]:
    """What a program takes, without keys."""
    seconds: defaultdict[str, float] = defaultdict(float)
    for layer in program.layers:
        seconds[layer.kind] += layer.seconds
    opcodes = [each.opcode for each in program.instructions]
    return {
        "orders": [name for name in ORDERS if any(name in layer.name for layer in program.layers)],
        "sentences": program.batch,
        "levels": program.depth,
        "bootstraps": opcodes.count("bootstrap"),
        "rotations": sum(each.count for each in program.key_switches if each.kind == "rotation"),
        "products": opcodes.count("mul"),
        "seconds": seconds,
        "total": program.seconds,
    }


def rows(encoder: Encoder, typical: Vector, batch: int) -> list[dict[str, object]]:
    """The rows of all orders.

    Args:
        typical: embedded sentences, (count, tokens, width).
        batch: sentences that share ciphertexts.
    """
    model = compiler.approximate(encoder.model(), compiler.Fit(calibration=typical))
    results = []
    for form in model.forms:
        executable = Compilation(form, None, client="slots", name="encoder").for_batch(batch)
        plan = executable.execution.plan
        plans = [
            (each.plan.stored_bytes, predict_plan(each.plan, stored_model()).seconds)
            for each in executable.candidates
        ]
        keys = {"keys": len(plan.keys), "key_bytes": plan.stored_bytes, "plans": plans}
        results.append({"tokens": encoder.tokens, **row(executable.program), **keys})
    return results


def main() -> None:
    """Compile and record."""
    parser = command("studies.attention.layouts.orders", __doc__)
    parser.add_argument("--model", type=Path, required=True, help="folder of a BERT with its tokenizer")
    parser.add_argument("--sentences", type=Path, required=True, help="text, a sentence a line")
    parser.add_argument("--tokens", type=int, default=32, help="of a sentence (default: 32)")
    parser.add_argument("--batch", type=int, default=1, help="sentences in the same ciphertexts (default: 1)")
    parser.add_argument("--calibration", type=int, default=100, help="sentences for ranges (default: 100)")
    parser.add_argument("--join", action="store_true", help="join sentences up to the length")
    parser.add_argument("--out", type=Path, help="folder (default: record/DATE-attention-products)")
    options = parser.parse_args()
    file = record_folder(options.out, "attention-products") / "orders.jsonl"
    weights = tensors(options.model / "model.safetensors")
    sentences = Labelled.read(
        options.model / "tokenizer.json", options.sentences, options.tokens if options.join else 0
    )
    numbers = sentences.long(options.tokens)[: options.calibration]
    typical = embedded(weights, sentences.cut(numbers, options.tokens))
    for each in rows(Encoder(weights, options.tokens), typical, options.batch):
        append(file, each)
        print(each, flush=True)


if __name__ == "__main__":
    main()
