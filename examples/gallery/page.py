"""The page of a record: `docs/reproduction/gallery.md`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .entry import entry, names

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "reproduction" / "gallery.md"
RECORDS = tuple(ROOT / "benchmarks" / "record" / f"2026-11-{day}-gallery" for day in (28, 29, 30))

INTRODUCTION = """# Published models

Each row is a model that others have published as a package, run in the clear and encrypted by one command:

```sh
cd examples
python -m gallery NAME
```

The command downloads the package, whose version and digest are pinned in `examples/gallery/requirements`,
and reads its weights. It needs the extras `check` and `images`, and for `splade_tiny` the package
`tokenizers`. Tensors of torch are read without torch. `keywright.compile` chooses parameters and
polynomials by its defaults. The tests are encrypted, evaluated and decrypted in the same process. *Same*
counts tests whose encrypted label equals the label in the clear; `brainmaze_seizures` has four labels for
each test, and all of them count. *Right* counts those with the true label, in the clear and encrypted.
*Error* is the largest error of any output, next to the largest output. No package, weight or sample is part
of this repository.

"""

CLOSING = """
Times are processor seconds on one thread: the whole compilation, and for each test its share of keys, the
encoding of the model, encryption, evaluation and decryption. Keys are the bytes that a client sends once.
The peak is for one process, which is client and server. Records contain parameters and wall times, which are
long because other programs used the machine. Predictions in records (`predicted_s`) are for a core without
neighbours, in a process that has its memory and its keys. A [profile of
`face_expression`](../../benchmarks/record/2026-11-30-gallery/face_expression.md) shows what a first run takes
besides. Each record names its commit: rows of earlier days are from earlier versions of the compiler:

{records}

## Data and changes

"""

HEAD = (
    "`NAME`: model", "package, licence", "tests", "same", "right", "error", "levels, bootstraps",
    "compiling, s", "running, s a test", "keys, MB", "sent, returned, kB a test", "peak, GB",
)  # fmt: skip


def text(records: Sequence[Path]) -> str:
    """The page of folders of records. Of a model that several have, the last counts."""
    newest = {path.name: path for record in records for path in sorted(record.glob("*.json"))}
    lines = [json.loads(newest[name].read_text()) for name in sorted(newest)]
    run = [line for line in lines if "refused" not in line]
    refused = [line for line in lines if "refused" in line]
    parts = [INTRODUCTION, *table([HEAD, *map(row, run)])]
    links = [f"* [{each.name}](../../{each.relative_to(ROOT).as_posix()})" for each in records]
    parts.append(CLOSING.format(records="\n".join(links)))
    parts += table([("`NAME`", "tests", "what differs from the published model"), *map(notes, lines)])
    if refused:
        parts.append("\n## Refused models\n\n")
        parts += table([("`NAME`: model", "package, licence", "reasons"), *map(reasons, refused)])
    if waiting := sorted(set(names()) - {line["name"] for line in lines}):
        shown = "".join(f"* `{name}`: {entry(name).title}\n" for name in waiting)
        parts.append(
            f"\n## Without a record\n\nThese commands also exist, but no record has them:\n\n{shown}"
        )
    return "".join(parts)


def table(rows: list[tuple[str, ...]]) -> list[str]:
    """Lines of a table with a heading."""
    rows = [rows[0], ("---",) * len(rows[0]), *rows[1:]]
    return [f"| {' | '.join(cells)} |\n" for cells in rows]


def row(line: dict[str, Any]) -> tuple[str, ...]:
    """Cells of a model."""
    tests = line["tests"]
    right = f"{line['right_clear']}, {line['right_encrypted']}" if "right_clear" in line else ""
    return (
        f"`{line['name']}`: {line['title']}",
        f"{line['package']}, {line['licence']}",
        str(tests),
        str(line["same"]),
        right,
        f"{line['error']:.2g} of {shown(line['largest'])}",
        f"{line['depth']}, {line['bootstraps']}",
        f"{line['compile_cpu_s']:.0f}",
        f"{shown(line['run_cpu_s'] / tests)}",
        f"{shown(line['key_bytes'] / 1e6)}",
        f"{shown(line['sent_bytes'] / 1e3 / tests)}, {shown(line['returned_bytes'] / 1e3 / tests)}",
        f"{line['peak_bytes'] / 1e9:.1f}",
    )


def shown(number: float) -> str:
    """A number with three significant digits, written out."""
    return f"{float(f'{number:.3g}'):.0f}" if abs(number) >= 100 else f"{number:.3g}"


def notes(line: dict[str, Any]) -> tuple[str, ...]:
    """Cells of what the tests are, and of what differs from the published model."""
    return f"`{line['name']}`", line["data"], line["changes"]


def reasons(line: dict[str, Any]) -> tuple[str, ...]:
    """Cells of why a model is refused."""
    told = "; ".join(reason["message"] for reason in line["refused"])
    return (
        f"`{line['name']}`: {line['title']}",
        f"{line['package']}, {line['licence']}",
        told.replace("|", "\\|"),
    )
