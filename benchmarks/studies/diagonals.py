"""`python -m studies.diagonals`: the cost of a diagonal of a linear transform, encoded and as coefficients.

N = 2^16, one thread, 64 diagonals with 16 baby steps, both kinds in turns; results are compared. Times are of
the processor, which others on the machine disturb least.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import keywright as kw
import numpy as np
from harness.folders import record_folder
from harness.measurement.clock import timed
from harness.pages.table import heading, markdown, spread

LEVELS, LOG_PERIODS = (4, 7, 10), (12, 13, 14, 15)
KINDS = ("encoded", "coefficients")
DIAGONALS, BABIES = 64, 16

Record = dict[str, Any]


def records(rounds: int, log_n: int) -> Iterator[Record]:
    """One for each kind of storage, period, level and round."""
    kw.set_threads(1)
    parameters = kw.Parameters.from_bits(log_n, [50] + [45] * max(LEVELS), [50] * 3, 45, insecure=log_n < 15)
    secret, random = kw.SecretKey.generate(parameters), np.random.default_rng(0)
    generator = kw.KeyGenerator(secret)
    encryptor = kw.Encryptor(generator.public_key())
    special = [len(parameters.q) + i for i in range(3)]
    steps = [*range(1, BABIES), *range(BABIES, DIAGONALS, BABIES)]
    specs = [kw.KeySpec.rotation(parameters, k, alpha=3, special=special) for k in steps]
    evaluator = kw.Evaluator(parameters, generator.evaluation_keys(specs=specs, relinearization=False))
    for level in LEVELS:
        vector = encryptor.encrypt(random.uniform(-1, 1, parameters.max_slots), level=level)
        for log_period in LOG_PERIODS:
            if 2**log_period > parameters.max_slots:
                continue
            rows = random.uniform(-1, 1, (DIAGONALS, 2**log_period))
            for number in range(rounds):
                results = []
                for kind in KINDS:
                    transform, records = timed(
                        kw.LinearTransform.from_rows,
                        parameters,
                        range(DIAGONALS),
                        rows,
                        level=level,
                        n1=BABIES,
                        special=special,
                        storage=kind,
                    )
                    if number == 0:
                        evaluator.linear_transform(vector, transform)
                    result, used = timed(evaluator.linear_transform, vector, transform)
                    results.append(result.to_bytes())
                    yield {
                        "storage": kind,
                        "level": level,
                        "log_period": log_period,
                        "round": number,
                        "bytes": transform.bytes,
                        "make_s": records.cpu,
                        "use_s": used.cpu,
                        "transforms": kw.LinearTransform.coefficient_transforms(
                            parameters, [2**log_period] * DIAGONALS
                        ),
                        "checked": results[0] == results[-1],
                    }


def table(lines: list[Record]) -> list[str]:
    """A row for each level and period."""
    rows = []
    for level in LEVELS:
        for log_period in LOG_PERIODS:
            cell = [r for r in lines if (r["level"], r["log_period"]) == (level, log_period)]
            if not cell:
                continue
            of = {kind: [r for r in cell if r["storage"] == kind] for kind in KINDS}
            ms = {
                (kind, what): [1e3 * r[what] / DIAGONALS for r in of[kind]]
                for kind in KINDS
                for what in ("make_s", "use_s")
            }
            extra = [b - a for a, b in zip(*(ms[kind, "use_s"] for kind in KINDS), strict=True)]
            rows.append(
                [
                    level,
                    f"2^{log_period}",
                    *(of[kind][0]["bytes"] // DIAGONALS // 1024 for kind in KINDS),
                    *(spread(ms[kind, "make_s"]) for kind in KINDS),
                    *(spread(ms[kind, "use_s"]) for kind in KINDS),
                    spread(extra),
                ]
            )
    head = ["level", "period"]
    head += [f"KiB, {kind}" for kind in KINDS]
    head += [f"made in ms, {kind}" for kind in KINDS]
    head += [f"ms a use, {kind}" for kind in KINDS]
    return markdown([*head, "ms more"], rows)


def main() -> None:
    """Measure, write the record, print the table."""
    parser = argparse.ArgumentParser(prog="python -m studies.diagonals", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="(default: 5)")
    parser.add_argument("--log-n", type=int, default=16, help="log2 of the ring degree (default: 16)")
    parser.add_argument("--out", type=Path, help="folder of the record (default: record/DATE-diagonals)")
    given = parser.parse_args()
    folder = record_folder(given.out, "diagonals")
    rows = []
    with (folder / "diagonals.jsonl").open("w") as raw:
        for record in records(given.rounds, given.log_n):
            if not record["checked"]:
                raise SystemExit("the results of the two kinds of storage differ")
            print(json.dumps(record), file=raw, flush=True)
            rows.append(record)
    facts = "one thread; times of the processor for each of 64 diagonals, median (least to most)"
    text = heading("Diagonals, encoded and as coefficients", facts) + table(rows)
    (folder / "diagonals.md").write_text("\n".join(text) + "\n")
    print("\n".join(text))


if __name__ == "__main__":
    main()
