"""`python -m studies.speed.networks NAME`: the work and the time of a network with a preset's bootstraps.

Each preset has a process of its own. Where the record exists, rows are appended: the processes of two presets
can take turns. With `KEYWRIGHT_BACKEND=counted` the engine counts its kernels, and the row has the work of
each kind of layer instead of the time. With `--plan` nothing is run: the row has the work of the planned
process and where bootstraps are. With `--setup` it has the time to compile, plan, make keys and encode.
`bootstraps` instead of a network counts plans of its bootstraps with other numbers.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import keywright as kw
import numpy as np
from harness.folders import record_folder
from harness.measurement import machine
from keywright._core import kernel_counts
from keywright.commands.helpers.inputs import load_inputs, parse_bytes
from keywright.compiler import Program
from keywright.plan.cost.model import CostModel, Weights
from keywright.plan.keys.time_prediction import predict_plan
from keywright.plan.memory.diagonals import network_diagonals
from keywright.plan.memory.process import ProcessPlan

from studies.networks.networks import NETWORKS
from studies.networks.session import Session, Setting
from studies.speed.cases import COUNTED, Counts, operations
from studies.speed.variants import NETWORKS as VARIANTS
from studies.speed.variants import rows

BOOTSTRAPS = "bootstraps"
"""Stands for a network: its rows are counts of bootstraps with other numbers."""
COUNTS = CostModel(
    Weights(transform=2.0**19, product=2.0**17, conversion=2.0**16, key_limb=0.0, multiplication=2.0**16)
)
"""Whose seconds are butterflies and multiply-adds: a product with a key or a diagonal is of both halves."""
PLANNED = 96
"""Images that memory is planned for: diagonals are kept where that saves time over all of them."""
CALIBRATION = range(9900, 10_000)
"""Images on which activations are fitted: the last hundred."""


def places(program: Program) -> list[dict[str, Any]]:
    """Return where a program bootstraps: the layer, the level that is needed, how many ciphertexts, and how
    often."""
    out = []
    for layer in program.layers:
        if layer.kind == "bootstrap":
            steps = range(layer.start, layer.stop)
            count = sum(program.instructions[step].opcode == "bootstrap" for step in steps)
            out.append(
                {
                    "name": layer.name.partition(",")[0],
                    "needed": int(layer.name.rpartition(" ")[2]),
                    "output_level": layer.output_level,
                    "ciphertexts": count,
                    "bootstraps": count - sum(step in program.bootstrap_pairs for step in steps),
                }
            )
    return out


def planned(name: str, setting: Setting) -> dict[str, Any]:
    """Compile and plan; return where the program bootstraps, and what it is predicted to take."""
    start = time.process_time()
    model = kw.compile(
        setting.model,
        setting.calibration and load_inputs(setting.calibration),
        activations=setting.activations,
        parameters=setting.preset,
        batch=setting.batch,
    )
    compiled, program = time.process_time() - start, model.program
    plan = model.plan_process(setting.images, setting.memory, setting.key_memory)
    seconds: dict[str, float] = {}
    for layer in program.layers:
        seconds[layer.kind] = seconds.get(layer.kind, 0.0) + layer.seconds
    return {
        "kind": "planned",
        "network": name,
        "preset": program.operands.bootstraps[0].preset,
        "batch": program.batch,
        "places": places(program),
        "kinds": seconds,
        "work": work(plan, program),
        "predicted_s": plan.seconds,
        "memory_parts": plan.memory.parts(),
        "kept": plan.explain(),
        "compile_s": compiled,
        "plan_s": time.process_time() - start - compiled,
    }


def work(plan: ProcessPlan, program: Program) -> float:
    """Return billions of butterflies and multiply-adds of a planned process for a batch, by the planner's
    counts."""
    total = predict_plan(plan.execution.plan, COUNTS).seconds
    for kept in network_diagonals(program, plan.execution, COUNTS):
        storage = plan.diagonals.transforms[kept.place]
        total += kept.uses * sum(way.seconds for way in kept.ways if way.storage == storage)
    return total / 1e9


class Counting:
    """Adds up the work of every kind of layer; `step` is called after every operation.

    Attributes:
        kinds: butterflies and multiply-adds, in billions, by kind of layer.
    """

    def __init__(self, program: Program, largest: int) -> None:
        kinds = {n: layer.kind for layer in program.layers for n in range(layer.start, layer.stop)}
        self._order = [
            (kinds.get(number, "other"), program.rings[step.result] or largest)
            for number, step in enumerate(program.instructions)
            if step.opcode != "input"
        ]
        self._done = 0
        self._before: Counts = kernel_counts()
        self.kinds: dict[str, dict[str, float]] = {}

    def step(self) -> None:
        """Note that an operation has ended."""
        kind, log_n = self._order[self._done]
        after: Mapping[str, Sequence[int]] = kernel_counts()
        total = self.kinds.setdefault(kind, {"butterflies": 0.0, "multiply_adds": 0.0})
        for name, amount in operations(self._before, after, log_n).items():
            total[name] += amount
        self._done, self._before = self._done + 1, after


def row(name: str, setting: Setting, samples: np.ndarray[Any, np.dtype[np.float64]]) -> dict[str, Any]:
    """Run a batch once, and return what it took."""
    session = Session(setting, samples[:1])
    program, runner = session.program, session.server.runner
    out = {
        "network": name,
        "preset": setting.preset,
        "batch": program.batch,
        "places": places(program),
        "facts": session.facts,
        "program_s": program.seconds,
    }
    if os.environ.get("KEYWRIGHT_BACKEND") == COUNTED:
        inputs = [session.server.requests.read(data) for data in session.client.encrypt_batch(samples)]
        counting = Counting(program, session.parameters.log_n)
        start = time.process_time()
        runner.run(session.server.keys, inputs, on_step=counting.step)
        return {"kind": "count", **out, "kinds": counting.kinds, "counted_s": time.process_time() - start}
    first = session.classify(samples)[0]
    clear = {name: first[name] for name in ("error_bound", "kinds", "processor_s", "seconds", "peak_bytes")}
    return {"kind": "time", **out, **clear}


def measured(options: argparse.Namespace) -> dict[str, Any]:
    """Return the row of a network."""
    network = NETWORKS[options.network]
    model = options.model or network.model
    if model is None:
        raise SystemExit(f"{options.network} needs its file: --model")
    with tempfile.TemporaryDirectory() as folder:
        calibration = Path(folder) / "calibration.npy"
        np.save(calibration, network.images(options.data, CALIBRATION).samples)
        model = options.model or network.model
        assert model is not None, "main asks for it"
        setting = Setting(
            model,
            Path(folder) / "program.kwp",
            calibration,
            {} if options.relu is None else {"relu": options.relu},
            options.preset,
            options.batch,
            PLANNED,
            options.memory,
            options.threads,
            options.key_memory,
        )
        if options.plan:
            return planned(options.network, setting)
        samples = network.images(options.data, range(options.batch)).samples.astype(np.float64)
        if options.setup:
            facts = Session(setting, samples[:1]).facts
            return {"kind": "setup", "network": options.network, "facts": facts, "load": os.getloadavg()[0]}
        return {**row(options.network, setting, samples), "load": os.getloadavg()[0]}


def main(arguments: list[str] | None = None, show: Callable[[str], None] = print) -> int:
    """Write the rows, also to the record."""
    parser = argparse.ArgumentParser(prog="python -m studies.speed.networks", description=__doc__)
    parser.add_argument("network", choices=[BOOTSTRAPS, *NETWORKS])
    parser.add_argument("--model", type=Path, help="its ONNX file")
    parser.add_argument("--data", type=Path, help="of its test images, as for studies.networks")
    parser.add_argument("--preset", help="bootstraps (default: as `kw.compile` chooses)")
    parser.add_argument("--plan", action="store_true", help="only count the work of the planned process")
    parser.add_argument("--setup", action="store_true", help="only compile, plan, make keys and encode")
    parser.add_argument("--relu", help="polynomials of ReLU, as minimax:10")
    parser.add_argument("--batch", type=int, default=1, help="images in a ciphertext (default: 1)")
    parser.add_argument("--memory", type=parse_bytes, help="most memory of the process")
    parser.add_argument("--key-memory", type=parse_bytes, help="most bytes of keys in memory")
    parser.add_argument("--threads", type=int, default=1, help="of the engine (default: 1)")
    parser.add_argument("--out", type=Path, help="folder of the record (default: record/DATE-speed-networks)")
    options = parser.parse_args(arguments)
    if options.network == BOOTSTRAPS:
        listed = [{"kind": "variant", **row} for row in rows(VARIANTS)]
    elif (options.model or NETWORKS[options.network].model) is None:
        parser.error(f"--model names the ONNX file of {options.network}: see examples/README.md")
    else:
        listed = [measured(options)]
    path = record_folder(options.out, "speed-networks") / "networks.jsonl"
    if not path.exists():
        listed.insert(0, {"kind": "machine", "machine": machine.describe()})
    with path.open("a", encoding="utf-8") as file:
        file.writelines(json.dumps(each) + "\n" for each in listed)
    show(str(path))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
