"""One run in a process of its own: `python -m studies.executed_keys.worker SETTING.json`. Prints its line."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import keywright as kw
import numpy as np
from harness.programs.peer import leave, peak_rss_bytes
from keywright import compiler
from keywright._core import inspect, key_set_head
from keywright.plan import CostModel
from keywright.plan.keys import plan_file
from keywright.plan.keys.execution import PlanExecution
from keywright.runtime import run_clear, simulate

from studies.executed_keys.key_sets import facts
from studies.executed_keys.resident import Run
from studies.executed_keys.subjects import SUBJECTS, load

ALLOWED = 4.0
"""How many times the predicted error a result may be off: predictions are within two bits."""


def main() -> None:
    """Run and print.

    Raises:
        SystemExit: the result is wrong.
    """
    given: dict[str, Any] = json.loads(Path(sys.argv[1]).read_text())
    program = compiler.load(Path(given["program"]))
    compiled = load(SUBJECTS[given["network"]], program)
    sample = np.load(given["sample"])
    execution = PlanExecution(
        plan_file.load(Path(given["plan"])), compiled.parameters, program, compiled.bootstraps
    )
    plan = execution.plan
    expected = given.get("predicted_error")
    if expected is None:
        expected = simulate(program, execution, sample[None]).worst_error
    kw.set_threads(given["key_threads"])
    secret = kw.SecretKey.generate(compiled.parameters)
    bootstrappers = [kw.Bootstrapper(one) for one in execution.bootstrapper_plans]
    run = Run(
        program,
        execution,
        bootstrappers,
        kw.KeyGenerator(secret),
        given["key_memory"],
        threads=given["threads"],
        key_threads=given["key_threads"],
    )
    client = kw.Decryptor(secret)
    level, ring, magnitude = program.input.level, program.input.log_n or None, program.input.magnitude
    sent = [client.encrypt(row, len(row), level, ring, magnitude) for row in program.pack(sample)]
    inputs = [one.expand() for one in sent]
    load_before = os.getloadavg()[0]
    begin = time.time()
    results = run.run(inputs)
    scores = program.unpack(np.asarray([client.decrypt(result) for result in results]))
    clear = run_clear(program, sample)
    error = float(np.abs(scores - clear).max())
    if not error <= ALLOWED * expected:
        raise SystemExit(f"the result is off by {error:.3g}, {expected:.3g} is predicted")
    specs = execution.key_specs
    print(
        json.dumps(
            {
                **facts(plan, CostModel()),
                "all_keys": len(specs),
                "seconds": sum(run.seconds.values()),
                "processor_seconds": sum(run.processor_seconds.values()),
                "wall": run.seconds,
                "processor": run.processor_seconds,
                "seeded_bytes": sum(spec.bytes for spec in specs),
                "both_halves_bytes": 2 * sum(spec.bytes for spec in specs),
                "file_bytes": inspect(key_set_head(specs))["bytes"],
                "segments": len(run.segments),
                "largest_segment_bytes": max(segment.bytes for segment in run.segments),
                "keys_s": run.made_seconds,
                "peak_bytes": peak_rss_bytes(),
                "error": error,
                "predicted_error": expected,
                "label": int(np.argmax(scores)),
                "clear_label": int(np.argmax(clear)),
                "threads": given["threads"],
                "load": load_before,
                "began": begin,
            }
        ),
        flush=True,
    )
    leave()


if __name__ == "__main__":
    main()
