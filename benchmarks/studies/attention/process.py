"""The options and processes that studies of encrypted texts share."""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keywright as kw
from harness.folders import BUILD


def command(module: str, documentation: str | None) -> argparse.ArgumentParser:
    """The command line of a study, without options."""
    return argparse.ArgumentParser(
        prog=f"python -m {module}",
        description=documentation,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def read_options(parser: argparse.ArgumentParser, kind: str, tokens: int, count: int) -> argparse.Namespace:
    """Read the command line, with the options of every study, and set the number of threads."""
    parser.add_argument("--sentences", type=Path, required=True, help="text, a sentence a line")
    parser.add_argument("--tokens", type=int, default=tokens, help=f"of a text (default: {tokens})")
    parser.add_argument("--count", type=int, default=count, help=f"encrypted texts (default: {count})")
    parser.add_argument("--calibration", type=int, default=100, help="texts for ranges (default: 100)")
    parser.add_argument("--threads", type=int, default=2, help="of the engine (default: 2)")
    parser.add_argument("--memory", type=int, help="largest bytes of the server (default: by the plan)")
    parser.add_argument(
        "--key-bytes", type=int, help="largest bytes of keys in memory (default: by the plan)"
    )
    parser.add_argument("--work", type=Path, default=BUILD / kind, help="folder of model and keys")
    parser.add_argument("--out", type=Path, help=f"folder of the record (default: record/DATE-{kind})")
    options = parser.parse_args()
    for name in ("RAYON_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ.setdefault(name, str(options.threads))
    return options


def apart(function: Callable[..., None], *arguments: object) -> None:
    """Call a function in a process of its own, and end if that fails."""
    process = multiprocessing.get_context("spawn").Process(target=function, args=arguments)
    process.start()
    process.join()
    if process.exitcode:
        raise SystemExit(process.exitcode)


def prepare(compiled: kw.Model, options: argparse.Namespace, place: Path, *, keys: bool = True) -> kw.Model:
    """Return a model with its keys limited as the options say; save it, its client, and keys."""
    model = compiled if options.key_bytes is None else compiled.with_keys_within(options.key_bytes)
    print(model.report, flush=True)
    model.save(place / "model")
    client = kw.load_client(place / "model")
    client.save(place / "client")
    if keys:
        client.save_keys(place / "model")
    return model


def append(file: Path, row: dict[str, Any]) -> None:
    """Append a row to a file."""
    with file.open("a", encoding="utf-8") as rows:
        rows.write(json.dumps(row) + "\n")


def recorded(*files: Path) -> list[dict[str, Any]]:
    """The rows of those files that exist."""
    lines = [line for file in files if file.exists() for line in file.read_text("utf-8").splitlines()]
    return list(map(json.loads, lines))
