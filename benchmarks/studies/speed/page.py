"""The page of speed: its text, with tables from a record."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from harness.pages.prose import wrapped
from harness.pages.table import markdown

from studies.speed.variants import FORMER

TEXT = Path(__file__).with_name("page.md")
BASE = {
    "complex": ("N16_QP1745_L15_S40", "N16_QP1605_L10_S40"),
    "real": ("N16_QP1745_L15_S40_real", FORMER),
}
"""Presets of commit e2e7e103 whose levels have 40 bits. The one with the least cost is what a ratio is of."""
BACKENDS = ("avx512", "avx2")
NAMES = {"resnet20-aespa": "squares", "resnet20-relu": "ReLU, `minimax:10`"}
TARGETS = {"complex": (0.6, 0.65), "real": (0.55, 0.6)}
"""Of the counted work, and of the time."""

Row = Mapping[str, Any]
Key = tuple[str, str]


RECORDS = {
    "RECORD": "*-speed/speed.jsonl",
    "PLANNED": "*-speed-planned/networks.jsonl",
    "BATCHES_8": "*-speed-batches/within_8gb.jsonl",
    "BATCHES": "*-speed-batches/networks.jsonl",
    "JOINED_8": "*-speed-joined/within_8gb.jsonl",
    "JOINED": "*-speed-joined/networks.jsonl",
    "RUN_APART": "*-speed-joined/run_apart.jsonl",
    "RUN_TOGETHER": "*-speed-joined/run_joined.jsonl",
    "PEERS": "*-speed-peers/rotations.jsonl",
    "THREADS": "*-speed-threads/bootstraps.jsonl",
    "LENET": "*-speed-lenet/networks.jsonl",
    "SETUP": "*-speed-setup/networks.jsonl",
}
"""Names of records in the text: of bootstraps; of programs and bootstraps that were planned with the former
preset of 12 levels and with the one that replaced it; of batches that were planned without pairs and with,
within 8 GB and without a limit, and the same with joined halves; of encrypted batches without these and with
them; of operations beside peers; of bootstraps on
one and two threads; of a LeNet by batch; and of the steps before a run."""


def last_records(folder: Path) -> dict[str, Path]:
    """Return the last record of each name."""
    return {name: sorted(folder.glob(pattern))[-1] for name, pattern in RECORDS.items()}


def page(records: Mapping[str, Path]) -> str:
    """Return the page with the figures of the records."""
    rows, planned, limited, batches, joined_limited, joined, apart, together, peers, threads, lenet, setup = (
        [json.loads(line) for line in records[name].read_text(encoding="utf-8").splitlines()]
        for name in RECORDS
    )
    text = TEXT.read_text(encoding="utf-8")
    tables = {
        "cases": cases(rows),
        "targets": targets(rows),
        "parts": parts(rows),
        "variants": variants(rows),
        "network bootstraps": variants(planned, each=True),
        "planned": planned_programs(planned),
        "batches": planned_programs(batches),
        "joined": planned_programs([*batches, *joined]),
        "joined limited": planned_programs([*limited, *joined_limited]),
        "joined runs": joined_runs(apart, together),
        "peers": beside_lattigo(peers),
        "threads": by_threads(threads),
        "lenet": by_batch(lenet),
        "setup": before_runs(setup),
    }
    for name, lines in tables.items():
        text = text.replace(f"<!-- {name} -->", "\n".join(lines))
    for name, path in records.items():
        text = text.replace(name, f"../../benchmarks/record/{path.parent.name}/{path.name}")
    return wrapped(text)


def joined_runs(*runs: Sequence[Row]) -> list[str]:
    """Return the table of encrypted batches without joined halves and with."""
    cells = []
    for halves, rows in zip(("apart", "joined"), runs, strict=True):
        run, images = rows[0]["run"], rows[1:]
        cells.append(
            [
                halves,
                f"{median(row['seconds'] for row in images):.2f}",
                f"{median(row['processor_s'] for row in images):.2f}",
                f"{run['key_file_bytes'] / 1e9:.2f} GB",
                f"{max(row['peak_bytes'] for row in images) / 1e9:.2f} GB",
                f"{images[0]['sent_bytes'] / 1e6:.2f} MB",
            ]
        )
    head = ["halves", "s an image", "processor time, s", "keys sent", "peak", "sent an image"]
    return markdown(head, cells)


def key(row: Row) -> Key:
    """Return what tells the cases apart."""
    return row["preset"], row["values"]


def key_of(row: Row) -> Key | None:
    """Return the case of a timed row, or None for another row."""
    return key(row) if row["kind"] == "time" else None


def units(row: Row) -> float:
    """Return the levels left, times the vectors of values that were bootstrapped."""
    return float(row["levels_left"] * row["vectors"])


def counts(rows: Iterable[Row]) -> dict[Key, float]:
    """Return billions of butterflies and multiply-adds for each level and vector."""
    listed = (row for row in rows if row["kind"] == "count")
    return {key(row): work(row) / units(row) for row in listed}


def times(rows: Iterable[Row]) -> dict[Key, list[float]]:
    """Return seconds for each level and vector, by round."""
    out: dict[Key, list[float]] = {}
    for row in rows:
        if row["kind"] == "time":
            out.setdefault(key(row), []).append(row["median_s"] / units(row))
    return out


def cases(rows: Sequence[Row]) -> list[str]:
    """Return the table of all cases."""
    counted, timed = counts(rows), times(rows)
    by_key = {key(row): row for row in rows if row["kind"] == "count"}
    bits = {one: min(row["worst_bits"] for row in rows if key_of(row) == one) for one in by_key}
    cells = []
    for one in by_key:
        row = by_key[one]
        cells.append(
            [
                f"`{row['preset']}`",
                "two real" if row["values"] == "pair" else row["values"],
                row["levels_left"],
                f"{row['butterflies']:.2f}",
                f"{row['multiply_adds']:.2f}",
                f"{counted[one]:.3f}",
                f"{median(timed[one]) * units(row):.2f}",
                f"{1e3 * median(timed[one]):.0f}",
                f"{row['key_bytes'] / 1e9:.2f} GB",
                f"{bits[one]:.1f}",
            ]
        )
    head = ["preset", "input", "levels", "butterflies, 10^9", "multiply-adds, 10^9"]
    head += [
        "work / level and vector",
        "s, in turns",
        "ms / level and vector",
        "key bytes",
        "worst bits, 3 rounds",
    ]
    return markdown(head, cells, aligned=False)


def ratio(timed: Mapping[Key, list[float]], new: Key, old: Iterable[Key]) -> float:
    """Return the median over the rounds of a time divided by the least of the old ones in its round."""
    rounds = zip(timed[new], *(timed[one] for one in old), strict=True)
    return float(median(ours / min(others) for ours, *others in rounds))


def targets(rows: Sequence[Row]) -> list[str]:
    """Return the best new case for each kind of value, compared with the best of the old presets."""
    counted, timed = counts(rows), times(rows)
    known = {name for names in BASE.values() for name in names}
    cells = []
    for values, (work, seconds) in TARGETS.items():
        old = [(name, values) for name in BASE[values]]
        kinds = ("real", "pair") if values == "real" else (values,)
        best = min(
            (one for one in counted if one[0] not in known and one[1] in kinds), key=counted.__getitem__
        )
        done = counted[best] / min(counted[one] for one in old)
        took = ratio(timed, best, old)
        what = "two ciphertexts at once" if best[1] == "pair" else best[1]
        cells.append(
            [
                f"{values} values",
                f"`{best[0]}`, {what}",
                f"{done:.2f}",
                f"{work}",
                f"{took:.2f}",
                f"{seconds}",
            ]
        )
    return markdown(["a bootstrap of", "by", "counted", "target", "time", "target"], cells, aligned=False)


def work(row: Row) -> float:
    """Return billions of butterflies and multiply-adds."""
    return float(row["butterflies"] + row["multiply_adds"])


def parts(rows: Sequence[Row]) -> list[str]:
    """Return where the work of bootstraps of complex values is. One reduction is what real values save."""
    counted = {key(row): row for row in rows if row["kind"] == "count"}
    cells = []
    for (preset, values), row in counted.items():
        real = counted.get((f"{preset}_real", "real"))
        if values != "complex" or real is None:
            continue
        first, reduction = row["slots_to_coeffs"], work(row) - work(real)
        rest = work(real) - reduction - work(first)
        cells.append(
            [f"`{preset}`", *(f"{part:.2f}" for part in (work(first), rest, 2 * reduction, work(row)))]
        )
    head = ["preset", "slots to coefficients", "raising, coefficients to slots", "two reductions", "all"]
    return markdown(head, cells)


def variants(rows: Sequence[Row], each: bool = False) -> list[str]:
    """Return the counts of plans with other numbers; ``each`` also states the work of one bootstrap."""
    cells = [
        [
            row["variant"],
            *([f"{work(row):.2f}"] if each else []),
            f"{work(row) / row['levels_left']:.3f}",
            f"{row['key_bytes'] / 1e9:.2f} GB",
            f"{row['matrix_bytes'] / 1e9:.2f} GB",
            f"{row['predicted_worst_bits']:.1f}",
        ]
        for row in rows
        if row["kind"] == "variant"
    ]
    head = ["plan", *(["work"] if each else []), "work / level", "keys", "matrices", "worst bits, predicted"]
    return markdown(head, cells)


def bootstraps(place: Mapping[str, Any]) -> int:
    """Return how often a program bootstraps at one place; two ciphertexts may share a bootstrap."""
    return int(place.get("bootstraps", place["ciphertexts"]))


def planned_programs(rows: Sequence[Row]) -> list[str]:
    """Return the work of whole programs before and after changes: of the first row of each, and of the
    last."""
    programs: dict[tuple[str, int], list[Row]] = {}
    for row in (row for row in rows if row["kind"] == "planned"):
        programs.setdefault((row["network"], row["batch"]), []).append(row)
    cells = []
    for (network, batch), (before, *_, after) in programs.items():
        cells.append(
            [
                f"{NAMES[network]}, {batch} image{'s' * (batch > 1)}",
                *(sum(map(bootstraps, row["places"])) for row in (before, after)),
                *(f"{row['work']:.1f}" for row in (before, after)),
                f"{after['work'] / before['work']:.2f}",
                f"{before['predicted_s']:.1f} s, {after['predicted_s']:.1f} s",
            ]
        )
    head = ["ResNet-20 with", "bootstraps before", "after", "work before", "after", "ratio", "predicted time"]
    return markdown(head, cells)


def beside_lattigo(rows: Sequence[Row]) -> list[str]:
    """Return the processor time of rotations with AVX-512 and with AVX2, and Lattigo's divided by each:
    medians over the rounds of the ratios of medians."""
    taken: dict[tuple[str, int, int], dict[str, list[float]]] = {}
    for row in (row for row in rows if "work" in row):
        operation = taken.setdefault((row["work"], row["level"], row["alpha"]), {})
        operation.setdefault(row["target"], []).append(row["median_s"])
    cells: list[list[Any]] = []
    for (work, level, alpha), seconds in taken.items():
        peer, own = seconds["lattigo"], [seconds[name] for name in BACKENDS]
        ratios = [median(theirs / ours for theirs, ours in zip(peer, each, strict=True)) for each in own]
        what = "a rotation" if work == "rotate" else "one of 8 hoisted rotations"
        times = [f"{1e3 * median(each):.1f} ms" for each in (*own, peer)]
        cells.append([what, level, alpha, *times, *(f"{ratio:.1f}" for ratio in ratios)])
    cells.sort(key=lambda cell: (cell[0], -cell[2], -cell[1]))
    head = ["what", "level", "alpha", "AVX-512", "AVX2", "Lattigo", "Lattigo by AVX-512", "Lattigo by AVX2"]
    return markdown(head, cells)


def by_threads(rows: Sequence[Row]) -> list[str]:
    """Return the wall and the processor time of bootstraps on one and on two threads."""
    taken = {(key(row), row["threads"]): row for row in rows}
    cells = []
    for one in dict.fromkeys(which for which, _ in taken):
        alone, both = taken[one, 1], taken[one, 2]
        wall = [median(row["wall_s"]) for row in (alone, both)]
        cells.append(
            [
                f"`{one[0]}`, {'two real' if one[1] == 'pair' else one[1]}",
                *(f"{seconds:.2f} s" for seconds in wall),
                f"{wall[0] / wall[1]:.2f}",
                *(f"{row['median_s']:.2f} s" for row in (alone, both)),
            ]
        )
    head = ["a bootstrap", "one thread", "two", "times faster", "processor time, one", "two"]
    return markdown(head, cells)


def by_batch(rows: Sequence[Row]) -> list[str]:
    """Return the least processor time of an image of a LeNet by the images that share ciphertexts."""
    timed: dict[int, Row] = {}
    for row in (row for row in rows if row["kind"] == "time"):
        timed[row["batch"]] = min(
            timed.get(row["batch"], row), row, key=lambda each: float(each["processor_s"])
        )
    cells = [
        [
            batch,
            f"{1e3 * row['processor_s']:.0f} ms",
            f"{timed[1]['processor_s'] / row['processor_s']:.2f}",
            f"{row['facts']['key_bytes'] / 1e9:.2f} GB",
            f"{row['peak_bytes'] / 1e9:.1f} GB",
        ]
        for batch, row in sorted(timed.items())
    ]
    return markdown(
        ["images in a ciphertext", "processor time of an image", "times faster than one", "keys", "peak"],
        cells,
    )


def before_runs(rows: Sequence[Row]) -> list[str]:
    """Return the processor time of all that comes before a network's first run."""
    cells = []
    for row in (row for row in rows if row["kind"] == "setup"):
        facts = row["facts"]
        parts = facts["processor_s"]
        cells.append(
            [
                NAMES[row["network"]].partition(",")[0],
                *(f"{parts[name]:.1f} s" for name in ("compile", "plan", "keys", "prepare")),
                f"{sum(parts.values()):.1f} s",
                f"{facts['key_bytes'] / 1e9:.2f} GB",
                f"{facts['plaintext_bytes'] / 1e9:.2f} GB",
                f"{row['load']:.1f}",
            ]
        )
    head = ["ResNet-20 with", "compile", "plan", "make keys", "encode", "all", "keys", "encoded", "load"]
    return markdown(head, cells)
