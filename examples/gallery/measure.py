"""One entry, in the clear and encrypted, with its costs."""

from __future__ import annotations

import os
import resource
import time
from typing import Any

import keywright as kw
import numpy as np
from keywright.errors import KeywrightError

from .entry import Array, Case, Entry


def measure(name: str, entry: Entry, case: Case, package: str, memory: int) -> dict[str, Any]:
    """Run the model in the clear and encrypted on its tests, and compare.

    Args:
        memory: most bytes of the process.
    """
    line: dict[str, Any] = {
        "name": name,
        "package": package,
        "title": entry.title,
        "licence": entry.licence,
        "data": entry.data,
        "changes": entry.changes,
        "tests": len(case.tests),
    }
    clear = np.asarray(case.outputs(case.tests))
    try:
        line |= encrypted(case, clear, memory)
    except* KeywrightError as refused:
        line["refused"] = [
            {"code": getattr(each, "code", ""), "message": str(each)} for each in leaves(refused)
        ]
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return line | {
        "peak_bytes": usage.ru_maxrss * 1024,
        "threads": int(os.environ.get("RAYON_NUM_THREADS", os.cpu_count() or 1)),
        "load": os.getloadavg()[0],
    }


def leaves(group: BaseExceptionGroup[Any]) -> list[BaseException]:
    """The errors of a group and of the groups in it."""
    errors: list[BaseException] = []
    for each in group.exceptions:
        errors += leaves(each) if isinstance(each, BaseExceptionGroup) else [each]
    return errors


def encrypted(case: Case, clear: Array, memory: int) -> dict[str, Any]:
    """Costs of the encrypted tests, and their agreement with those in the clear."""
    tests = np.asarray(case.tests, np.float64)
    wall, processor = time.perf_counter(), time.process_time()
    model = kw.compile(case.model, case.calibration, **{"samples": len(tests)} | case.options)
    model = model.with_server_within(memory)
    compiling = time.perf_counter() - wall, time.process_time() - processor
    print(model.report, flush=True)
    chosen, planned = model.plan_batches(len(tests), memory)
    chosen.client().guard(tests)
    processor = time.process_time()
    result = chosen.infer(tests, planned)
    used = time.process_time() - processor
    answers = chosen.answers(result.outputs)
    outputs = result.outputs
    if answers:
        outputs = answers[case.output] if case.output else next(iter(answers.values()))
    outputs = np.asarray(outputs).reshape(clear.shape)
    decisions, expected = case.decide(outputs), case.decide(clear)
    fit = chosen.program.fit_report
    line = {
        "parameters": repr(chosen.parameters),
        "depth": chosen.program.depth,
        "bootstraps": chosen.report.run.bootstraps,
        "fit_agreement": None if fit is None else fit.outputs.agreement,
        "same": int(case.agree(decisions, expected).sum()),
        "error": float(np.abs(outputs - clear).max()),
        "largest": float(np.abs(clear).max()),
        "compile_s": compiling[0],
        "compile_cpu_s": compiling[1],
        "keys_s": result.preparation.key_seconds,
        "prepare_s": result.preparation.seconds,
        "batches": result.batches.samples,
        "encrypt_s": sum(result.batches.encrypt_seconds),
        "evaluate_s": sum(result.batches.evaluate_seconds),
        "predicted_s": planned.seconds * len(result.batches.samples),
        "kinds": result.kinds,
        "decrypt_s": sum(result.batches.decrypt_seconds),
        "run_cpu_s": used,
        "key_bytes": chosen.report.sizes.key_bytes,
        "key_memory_bytes": result.preparation.key_bytes,
        "sent_bytes": result.batches.sent_bytes * len(result.batches.samples),
        "returned_bytes": result.batches.returned_bytes * len(result.batches.samples),
    }
    if case.truth is not None:
        line["right_clear"] = int(case.agree(expected, case.truth).sum())
        line["right_encrypted"] = int(case.agree(decisions, case.truth).sum())
    return line
