"""ARK executed on layers of ConvFHE: `python -m studies.coefficient_convolution`.

Two layers are decomposed apart, as in the paper's experiments. One is a convolution of values in coefficients
with its packing (CRot2: automorphisms of ciphertexts of their own). The other is the change of width behind a
block (CRot1: rotations of one ciphertext, masked and summed). Each runs with the keys of ConvFHE, of ARK's
two configurations, of LowMem, with level-aware keys, and with `optimal`, in turns. Results are decrypted and
compared with the layer in the clear. One thread; ConvFHE's primes, a uniform ternary secret, its levels.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import keywright as kw
import numpy as np
from harness.console import Console
from harness.folders import record_folder
from harness.measurement import machine
from harness.programs.peer import peak_rss_bytes
from harness.programs.suite import build, output
from keywright.plan import (
    STRATEGIES,
    AutomorphismGroup,
    Budget,
    Chain,
    CostModel,
    KeyPlan,
    Planner,
    Workload,
    make_group,
)
from keywright.plan.keys import plan_file
from keywright.plan.keys.execution import PlanExecution
from keywright.plan.keys.key_plan import IDENTITY
from keywright.plan.ring.chain_sources import chain_of
from published import convfhe

from studies.network_keys.rotation_lists import read

PROGRAM = "coefficient_convolution"
PACK_LEVEL = 1
Row = dict[str, Any]
Case = tuple[Row, Callable[[], Row]]
"""What is known of a case before it runs, and its run."""


@dataclass(frozen=True)
class Layer:
    """A convolution of a setting of ConvFHE (kernel width, depth, wideness): rows of pixels, and channels."""

    setting: str
    kernel: int
    width: int
    channels: int


LAYERS = (
    Layer("3-20-1", 3, 32, 16),
    Layer("5-8-3", 5, 32, 48),
)
"""Of the first block of each setting."""
CHANGES = (("3-20-1", 0), ("5-8-3", 0))
"""Changes of width: a setting, and behind which block from 0."""
STRATEGY_NAMES = ("all-required", "ark-memory", "ark-time", "lowmem")


def chain(log_n: int) -> Chain:
    """ConvFHE's primes. Its ring has the bound of a uniform ternary secret; smaller rings have none."""
    theirs = convfhe.convert(read("convfhe_resnet"), "3-20-1").chain
    bound = None if log_n >= theirs.log_n else int(sum(theirs.q) + sum(theirs.p)) + 1
    return Chain(log_n, theirs.q, theirs.p, bound)


def bits(of: Chain) -> tuple[list[int], list[int]]:
    """Widths of the primes."""
    return [int(b) for b in of.q], [int(b) for b in of.p]


def packings(layer: Layer, log_n: int) -> Counter[int]:
    """How often the packing of a layer applies each automorphism, by its Galois element."""
    fitting = (1 << log_n) // layer.width**2
    packed = 1 << (layer.channels - 1).bit_length()
    packings: Counter[int] = Counter()
    step = fitting // 2
    while step >= fitting // packed:
        packings[(1 << (log_n - step.bit_length() + 1)) + 1] += step * packed // fitting
        step //= 2
    return packings


def pack_workload(layer: Layer, of: Chain) -> Workload:
    """The packing: each automorphism of a ciphertext of its own."""
    group = AutomorphismGroup(of.log_n)
    groups = tuple(
        make_group(group, f"layer/pack {galois}/pack", PACK_LEVEL, [group.from_galois_element(galois)], count)
        for galois, count in packings(layer, of.log_n).items()
    )
    return Workload(f"{layer.setting} packing", of, groups)


def key_sets(workload: Workload, model: CostModel) -> Iterator[tuple[str, KeyPlan, float]]:
    """Plans by name, with processor seconds of planning: ConvFHE's keys, those of ARK and LowMem in the same
    shapes, a key for every rotation that ends at the level of its use, and `optimal` in the longer time of
    the first of these and the last, which expands seeds."""
    own: KeyPlan | None = None
    for name in STRATEGY_NAMES:
        begin = time.process_time()
        plan = convfhe.with_own_keys(STRATEGIES[name].plan(workload, model))
        yield ("convfhe" if name == "all-required" else name), plan, time.process_time() - begin
        own = own or plan
    assert own is not None
    begin = time.process_time()
    aware = STRATEGIES["kds"].plan(workload, model)
    yield "level-aware", aware, time.process_time() - begin
    begin = time.process_time()
    seconds = max(own.seconds(model), aware.seconds(model))
    optimal = Planner(workload, model).best(Budget(seconds=seconds))
    yield "optimal", optimal, time.process_time() - begin


def lines(layer: Layer, plan: KeyPlan, runs: int) -> list[str]:
    """A layer and its keys, as the program reads them."""
    of = plan.workload.chain
    q, p = bits(of)
    out = [
        f"log-n {of.log_n}",
        f"q {' '.join(map(str, q))}",
        f"p {' '.join(map(str, p))}",
        f"width {layer.width}",
        f"kernel {layer.kernel}",
        f"channels {layer.channels}",
        f"runs {runs}",
    ]
    return out + packing_lines(plan)


def packing_lines(plan: KeyPlan) -> list[str]:
    """The keys of a packing and the ways of its automorphisms, as programs read them."""
    return [*key_lines(plan), *(line for lines in way_lines(plan) for line in lines)]


def key_lines(plan: KeyPlan, level: int | None = None) -> list[str]:
    """The keys of a plan, held up to a level, or whole."""
    group = plan.workload.automorphisms
    out: list[str] = []
    for key in plan.keys:
        assert key.automorphism is not None
        shape, seeded = key.shape, str(key.shape.seeded).lower()
        special = " ".join(map(str, shape.special_primes))
        galois = group.galois_element(key.automorphism)
        held = shape.level if level is None else min(shape.level, level)
        out.append(f"key {galois} {held} {shape.alpha} {seeded} {special}")
    return out


def way_lines(plan: KeyPlan) -> list[list[str]]:
    """The ways of the targets of each group."""
    group = plan.workload.automorphisms
    out: list[list[str]] = []
    for targets, tree in zip(plan.workload.groups, plan.hops, strict=True):
        parents = {hop.child: hop for hop in tree}
        out.append([])
        for target in targets.targets:
            way: list[int] = []
            place = target
            while place != IDENTITY:
                hop = parents[place]
                assert hop.key.automorphism is not None
                way.append(group.galois_element(hop.key.automorphism))
                place = hop.parent
            out[-1].append(f"way {group.galois_element(target)} {' '.join(map(str, reversed(way)))}")
    return out


def pack_cases(programs: Path, layer: Layer, of: Chain, runs: int) -> Iterator[Case]:
    """CRot2: the convolution under each key set."""
    model = CostModel()
    for name, plan, planning in key_sets(pack_workload(layer, of), model):
        fields = {
            "case": "CRot2",
            **describe(layer),
            "keys_of": name,
            "seeded": plan.keys[0].shape.seeded,
            "planning_s": planning,
            "longest_way": plan.max_hops,
            "predicted_s": plan.seconds(model),
        }
        yield fields, partial(measured_pack, programs, layer, plan, runs)


def measured_pack(programs: Path, layer: Layer, plan: KeyPlan, runs: int) -> Row:
    """A convolution under one key set, in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "layer.txt"
        path.write_text("\n".join(lines(layer, plan, runs)))
        row: Row = json.loads(output([str(programs / PROGRAM), str(path)]))
    return row


def describe(layer: Layer) -> Row:
    """Fields of a layer."""
    return {
        "setting": layer.setting,
        "kernel": layer.kernel,
        "width": layer.width,
        "channels": layer.channels,
    }


def change_of_width(setting: str, index: int, log_n: int) -> tuple[int, list[list[int]]]:
    """Level and rotations of the two steps of a change of width, those by 0 left out."""
    site = read("convfhe_resnet")["settings"][setting]["strided_repack"][index]
    slots = 1 << (log_n - 1)
    steps = [[step % slots for step in site[name] if step % slots] for name in ("stage_m", "stage_r")]
    return int(site["level"]), [
        list(dict.fromkeys(measured_step)) for measured_step in steps if measured_step
    ]


def width_workload(setting: str, index: int, of: Chain) -> Workload:
    """A change of width: the rotations of each step are of one ciphertext."""
    group = AutomorphismGroup(of.log_n)
    level, stages = change_of_width(setting, index, of.log_n)
    groups = (make_group(group, f"repack {k}", level, list(steps)) for k, steps in enumerate(stages))
    return Workload(f"{setting} change of width", of, tuple(groups))


def width_cases(setting: str, index: int, log_n: int, runs: int) -> Iterator[Case]:
    """CRot1: rotations of one ciphertext, masked and summed, in two steps, under each key set."""
    model = CostModel()
    workload = width_workload(setting, index, chain_of(width_parameters(log_n)))
    for name, plan, planning in key_sets(workload, model):
        fields = {
            "case": "CRot1",
            "setting": setting,
            "index": index,
            "keys_of": name,
            "seeded": True,
            "planning_s": planning,
            "longest_way": plan.max_hops,
            "predicted_s": plan.seconds(model),
        }
        yield fields, partial(in_a_process, setting, index, plan_file.to_json(plan), runs)


def in_a_process(setting: str, index: int, planned: str, runs: int) -> Row:
    """`measured_width` in a process of its own, whose memory is that of these keys."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        return process.submit(measured_width, setting, index, planned, runs).result()


def width_parameters(log_n: int) -> kw.Parameters:
    """ConvFHE's primes, for the engine."""
    return kw.Parameters.from_bits(log_n, *bits(chain(log_n)), 30, insecure=log_n < 16)


def measured_width(setting: str, index: int, planned: str, runs: int) -> Row:
    """A change of width under one key set, in this process. Keys of a plan's file are seeded; the source's
    are the same with both halves."""
    kw.set_threads(1)
    plan = plan_file.from_json(planned)
    parameters = width_parameters(plan.workload.chain.log_n)
    level, stages = change_of_width(setting, index, parameters.log_n)
    secret = kw.SecretKey.generate(parameters)
    generator, decryptor = kw.KeyGenerator(secret), kw.Decryptor(secret)
    rng = np.random.default_rng(1)
    values = rng.uniform(-1, 1, parameters.max_slots)
    masks = [
        [(rng.uniform(0, 1, parameters.max_slots) < 1 / len(steps)).astype(float) for _ in steps]
        for steps in stages
    ]
    sent = decryptor.encrypt(values, parameters.max_slots, level).expand()
    clear = values
    for steps, chosen in zip(stages, masks, strict=True):
        clear = np.sum(
            [np.roll(clear, -step) * mask for step, mask in zip(steps, chosen, strict=True)], axis=0
        )
    execution = PlanExecution(plan, parameters)
    begin = time.perf_counter()
    keys = generator.evaluation_keys(specs=execution.key_specs, relinearization=False)
    keygen = time.perf_counter() - begin
    evaluator = kw.Evaluator(parameters, execution.follow(keys))

    def repack() -> kw.Ciphertext:
        value = sent
        for steps, chosen in zip(stages, masks, strict=True):
            rotated = evaluator.rotate_hoisted(value, steps)
            value = evaluator.multiply_lazy(rotated[0], chosen[0])
            for one, mask in zip(rotated[1:], chosen[1:], strict=True):
                value = evaluator.add(value, evaluator.multiply_lazy(one, mask))
        return evaluator.rescale(value)

    error = float(np.abs(np.asarray(decryptor.decrypt(repack())) - clear).max())
    seconds, processor = [], []
    for _ in range(runs):
        start, before = time.perf_counter(), time.process_time()
        repack()
        seconds.append(time.perf_counter() - start)
        processor.append(time.process_time() - before)
    return {
        "keys": len(plan.keys),
        "key_bytes": keys.bytes,
        "automorphisms": sum(map(len, stages)),
        "switches": plan.switches,
        "keygen_s": keygen,
        "seconds": seconds,
        "processor_seconds": processor,
        "error": error,
        "largest": float(np.abs(clear).max()),
        "peak_rss_bytes": peak_rss_bytes(),
    }


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m studies.coefficient_convolution", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a ring without security, the first layer alone")
    parser.add_argument("--rounds", type=int, default=3, help="turns of all key sets (default: 3)")
    parser.add_argument("--runs", type=int, default=3, help="timed runs of a layer in a turn (default: 3)")
    parser.add_argument("--out", type=Path, help="folder of the record (default: record/DATE-convolution)")
    return parser.parse_args()


def cases(programs: Path, options: argparse.Namespace) -> Iterator[Case]:
    """Every case, planned."""
    of = chain(13 if options.quick else 16)
    for layer in LAYERS[:1] if options.quick else LAYERS:
        shown = replace(layer, channels=4) if options.quick else layer
        yield from pack_cases(programs, shown, of, options.runs)
    for setting, index in CHANGES:
        yield from width_cases(setting, index, of.log_n, options.runs)


def main() -> int:
    """Write the record."""
    options = arguments()
    console = Console()
    programs = build(console, [PROGRAM])
    path = record_folder(options.out, "convolution") / "convolution.jsonl"
    with path.open("w") as out:
        planned = list(cases(programs, options))
        for turn in range(options.rounds):
            for fields, measure in planned:
                row = {**fields, **measure()}
                line = {"round": turn, **row, "machine": machine.describe()}
                print(json.dumps(line), file=out, flush=True)
                console.line(f"{row['case']} {row['setting']} {row['keys_of']}: {row['keys']} keys")
    print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
