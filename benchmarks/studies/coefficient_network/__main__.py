"""ConvFHE's networks on encrypted images: `python -m studies.coefficient_network --weights W --images I`.

W is the folder `weight_ker3_h5` of github.com/dwkim606/lattigo_conv for the setting 3-20-1, or a folder that
`studies.coefficient_network.train` wrote. I has a folder of CIFAR-10's test images for each class. Values are
in coefficients, as in the source; the program `coefficient_network` of `suite` runs the layers. Two scenarios
have keys of their own: changes of width (ARK's CRot1) and packings (CRot2). Each key set decomposes one of
them or both. Keys are held at the level of their use, with the digits and the halves of the key set, so that
they do the same work as whole ones in less memory; the record has the bytes of both.

Each row also says how many images in the clear keep their label where the polynomials stand in for ReLU, and
how far its own scores are from those of this simulation: the noise of the encrypted run.

A record grows by a row for each image, and a run that was interrupted goes on behind its last row.
`--count 0` writes a row with the counts of each key set's plan, and needs neither W nor I; with them, it
writes a row of the images in the clear.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from harness.console import Console
from harness.folders import record_folder
from harness.measurement import machine
from harness.programs.suite import build
from keywright.plan import AutomorphismGroup, Chain, CostModel, KeyPlan, Workload, make_group
from numpy.typing import NDArray

from studies.coefficient_convolution import key_lines, key_sets, way_lines
from studies.coefficient_network.network import (
    LOG_N,
    SETTINGS,
    SIGN,
    Array,
    Network,
    Setting,
    blank_network,
    change_of_width,
    clear_run,
    coefficients,
    cropped,
    layer_lines,
    log_slots,
    read_images,
    read_network,
)

PROGRAM = "coefficient_network"
MARGIN = 1.5
"""Bounds of values over the largest of the images."""
CHAIN = Chain(LOG_N, (50, 36, *[31] * 3, *[40] * 13, *[57] * 4, *[60] * 4, *[46] * 4), (61,) * 6, 1747)
"""Primes of the program."""
PACK_LEVEL, CHANGE_LEVEL = 1, 5
KEY_SETS = {
    "convfhe": ("convfhe", "convfhe"),
    "ark-memory CRot1": ("ark-memory", "convfhe"),
    "ark-memory CRot2": ("convfhe", "ark-memory"),
    "ark-time CRot1": ("ark-time", "convfhe"),
    "ark-time CRot2": ("convfhe", "ark-time"),
    "lowmem": ("lowmem", "lowmem"),
    "level-aware": ("level-aware", "level-aware"),
    "optimal": ("optimal", "optimal"),
}
"""Strategies for changes of width and for packings."""
Row = dict[str, Any]


def packings(network: Network) -> Workload:
    """The packings of all layers: each automorphism is of a ciphertext of its own."""
    counts: Counter[int] = Counter()
    for line in layer_lines(network, [1.0] * len(network.layers), 1.0):
        _, _, fitting, apart, parts, *_ = line.sizes
        for step in (fitting >> k for k in range(1, (fitting // apart).bit_length())):
            counts[2 * (1 << LOG_N) // (2 * step) + 1] += parts * step // apart
    group = AutomorphismGroup(LOG_N)
    groups = (
        make_group(group, f"{galois}/pack", PACK_LEVEL, [group.from_galois_element(galois)], count)
        for galois, count in sorted(counts.items())
    )
    return Workload("packings", CHAIN, tuple(groups))


def changes(network: Network) -> Workload:
    """The changes of width: the rotations of each step are of one ciphertext."""
    group = AutomorphismGroup(LOG_N)
    groups = (
        make_group(
            group, f"{index}/{k}", CHANGE_LEVEL, [turn.step for turn in turns if turn.step], layer.parts
        )
        for index, layer in enumerate(network.layers)
        if layer.stride > 1
        for k, turns in enumerate(change_of_width(layer, 1 << log_slots(network)))
    )
    return Workload("changes of width", CHAIN, tuple(groups))


@cache
def planned(workload: Workload, strategy: str) -> tuple[KeyPlan, float]:
    """The plan of a strategy, with processor seconds of planning."""
    return next((plan, s) for name, plan, s in key_sets(workload, CostModel()) if name == strategy)


def request_lines(network: Network, packing: KeyPlan, change: KeyPlan, thin: bool) -> Iterator[str]:
    """The request but for layers and images."""
    slots = log_slots(network)
    yield f"slots {slots}"
    yield from (" ".join(["sign", *map(repr, odd)]) for odd in SIGN)
    if thin:
        yield "thin"
    yield from key_lines(packing, PACK_LEVEL)
    yield from (line for lines in way_lines(packing) for line in lines)
    yield "change"
    yield from key_lines(change, CHANGE_LEVEL)
    ways = iter(way_lines(change))
    for layer in network.layers:
        for turns in change_of_width(layer, 1 << slots) if layer.stride > 1 else ():
            yield "step"
            yield from (f"turn {turn.step} {turn.start} {turn.run} {turn.period}" for turn in turns)
            yield from next(ways)


def rows(command: list[str], threads: int) -> Iterator[Row]:
    """The objects that the program prints, as they come.

    Raises:
        SystemExit: it failed.
    """
    environment = {**os.environ, "RAYON_NUM_THREADS": str(threads)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as program:
        assert program.stdout is not None
        yield from map(json.loads, program.stdout)
    if program.returncode:
        raise SystemExit(f"{PROGRAM} failed with status {program.returncode}")


def described(name: str, network: Network) -> tuple[KeyPlan, KeyPlan, Row]:
    """The plans of a key set for packings and for changes of width, and what a row says of them."""
    change_name, pack_name = KEY_SETS[name]
    packing, pack_s = planned(packings(network), pack_name)
    change, change_s = planned(changes(network), change_name)
    fields = {
        "keys_of": name,
        "planning_s": pack_s + change_s,
        "longest_packing_way": packing.max_hops,
        "longest_change_way": change.max_hops,
        "packing_key_bytes": packing.stored_bytes,
        "change_key_bytes": change.stored_bytes,
        "planned_keys": [len(packing.keys), len(change.keys)],
        "planned_switches": [packing.switches, change.switches],
        "change_rotations": sum(len(group.targets) for group in change.workload.groups),
    }
    return packing, change, fields


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m studies.coefficient_network", description=__doc__)
    parser.add_argument("--weights", type=Path, help="the folder of the weights")
    parser.add_argument("--images", type=Path, help="folders of CIFAR-10's test images")
    parser.add_argument("--setting", choices=sorted(SETTINGS), default="3-20-1", help="default: 3-20-1")
    parser.add_argument("--clear", type=int, default=100, help="images in the clear (default: 100)")
    parser.add_argument("--count", type=int, default=1, help="encrypted images for each key set (default: 1)")
    parser.add_argument("--sets", default=",".join(KEY_SETS), help="key sets, with commas between them")
    parser.add_argument("--thin", action="store_true", help="a thin client sends the images")
    parser.add_argument("--threads", type=int, default=1, help="threads of the engine (default: 1)")
    parser.add_argument("--out", type=Path, help="folder of the record (default: record/DATE-convfhe)")
    options = parser.parse_args()
    if options.count and not (options.weights and options.images):
        parser.error("--weights and --images are needed, but for --count 0")
    return options


def write_plans(setting: Setting, options: argparse.Namespace) -> int:
    """Write the counts of each key set's plan."""
    path = record_folder(options.out, "convfhe") / f"{setting.name}-plans.jsonl"
    network = blank_network(setting)
    with path.open("w") as out:
        for name in options.sets.split(","):
            row = {"setting": setting.name, **described(name, network)[2], "machine": machine.describe()}
            print(json.dumps(row), file=out, flush=True)
    print(path)
    return 0


def main() -> int:
    """Write the record."""
    options = arguments()
    console = Console()
    setting = SETTINGS[options.setting]
    if not (options.count or options.weights):
        return write_plans(setting, options)
    network = read_network(setting, options.weights)
    raw, labels, mean = read_images(options.images, max(options.clear, options.count))
    images = cropped(raw - mean, setting.kernel)
    scores, largest = clear_run(images, network)
    limits, bound = MARGIN * largest, MARGIN * float(np.abs(scores).max())
    simulated, _ = clear_run(images, network, limits)
    layers = layer_lines(network, limits, bound)
    clear = in_the_clear(scores[: options.clear], simulated[: options.clear], labels[: options.clear])
    folder = record_folder(options.out, "convfhe")
    if not options.count:
        row = {"setting": setting.name, **clear, "machine": machine.describe()}
        (folder / f"{setting.name}-clear.jsonl").write_text(json.dumps(row) + "\n")
        return 0
    programs = build(console, [PROGRAM])
    path = folder / f"{setting.name}{'-thin' * options.thin}.jsonl"
    known = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    with path.open("a") as out, tempfile.TemporaryDirectory() as work:
        for name in options.sets.split(","):
            first = sum(row["keys_of"] == name for row in known)
            packing, change, fields = described(name, network)
            text, values = Path(work) / "network.txt", Path(work) / "numbers.bin"
            lines = [*request_lines(network, packing, change, options.thin), *(one.line() for one in layers)]
            text.write_text("\n".join([*lines, f"images {max(options.count - first, 0)}"]))
            apart = network.layers[0].apart
            numbers = [part for one in layers for part in one.numbers]
            numbers += [coefficients(image, apart) for image in images[first : options.count]]
            np.concatenate(numbers).astype("<f8").tofile(values)
            command = [str(programs / PROGRAM), str(text), str(values)]
            for index, run in enumerate(rows(command, options.threads), first):
                row = {
                    "setting": setting.name,
                    **fields,
                    "image": index,
                    **compared(run, scores[index], simulated[index], int(labels[index]), bound),
                    **clear,
                    "machine": machine.describe(),
                }
                print(json.dumps(row), file=out, flush=True)
                console.line(f"{name}, image {index}: {row['seconds']:.1f} s, error {row['error']:.2g}")
    print(path)
    return 0


def in_the_clear(scores: Array, simulated: Array, labels: NDArray[np.intp]) -> Row:
    """What every row says of the images in the clear, with ReLU and with the polynomials in its place."""
    ordered = np.sort(simulated, 1)
    return {
        "clear_images": len(labels),
        "clear_correct": int((scores.argmax(1) == labels).sum()),
        "simulated_correct": int((simulated.argmax(1) == labels).sum()),
        "simulated_kept": int((simulated.argmax(1) == scores.argmax(1)).sum()),
        "simulated_error": float(np.abs(simulated - scores).max()),
        "smallest_margin": float((ordered[:, -1] - ordered[:, -2]).min()),
    }


def compared(run: Row, expected: Array, simulated: Array, label: int, bound: float) -> Row:
    """A row of the program, beside the scores in the clear with ReLU and with the polynomials."""
    results = np.array(run.pop("results")) * bound
    return {
        **run,
        "label_kept": int(results.argmax() == expected.argmax()),
        "correct": int(results.argmax() == label),
        "error": float(np.abs(results - expected).max()),
        "noise": float(np.abs(results - simulated).max()),
        "largest_score": float(np.abs(expected).max()),
    }


if __name__ == "__main__":
    sys.exit(main())
