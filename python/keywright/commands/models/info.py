"""Describe a Keywright file or folder; for a model, describe the program that it would compile to."""

import argparse
import zipfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import keywright as kw
from keywright import compiler
from keywright._reading.arrays import MAGIC, require_file
from keywright._reading.documents import Limits, read_json_file
from keywright._units import quantity
from keywright.commands.helpers.arguments import add_batch_argument, add_preset_argument
from keywright.commands.helpers.errors import CommandError
from keywright.commands.helpers.fit import add_fit_arguments, compile_model, fit_record, print_fit
from keywright.commands.helpers.inputs import load_array
from keywright.commands.output.report import print_report
from keywright.commands.terminal import Column, Terminal, Value
from keywright.errors import FormatError, KeywrightError

EXAMPLE = "keywright info keys/server/keys.kw"

LIMITS, STATE = Limits(64 << 20, 1 << 22), Limits(4096, 64)

JSON_KINDS = {
    "keywright-accounts": "tenants and the digests of their API keys",
    "keywright-calibration": "a calibration of a machine",
    "keywright-configuration": "the models of one key set",
    "keywright-identity": "the program that a folder's ciphertexts belong to",
    "keywright-manifest": "a model's manifest, for clients",
    "keywright-model": "a model's description",
    "keywright-plan": "a key plan",
    "keywright-program": "a program",
    "keywright-quotas": "quotas of tenants",
    "keywright-search": "a description of a search index",
    "keywright-search-encrypted": "an index of encrypted vectors",
    "keywright-search-index": "an index of vectors",
    "keywright-search-vote": "labels of a classifier by neighbours",
    "keywright-state": "the state folder of a service",
    "keywright-workload": "a list of key switches",
}
"""What files in JSON are, by their format without its version."""

STATE_FILES = {
    "audit.jsonl": "the audit file of a service",
    "lock": "the lock of a service on its state",
    "operator.key": "the key of the operator's page",
    "service.db": "the tables of a service: key sets, models, evaluations",
    "service.db-shm": "changes of a service's tables that are being written",
    "service.db-wal": "changes of a service's tables that are being written",
    "storage.json": "the name of the tables that a service's objects belong to",
}
"""What files of a service's state are that do not say so themselves, by name."""

POOL = b"kwpool\0"

JOB_FILES = {".message": "the ciphertexts of a request", ".answer": "the ciphertexts of an answer"}
"""What the files of a service's evaluations are, by suffix."""

MESSAGES = {
    b"KWSAMPL": "the ciphertexts of samples, or of answers",
    b"KWSQURY": "a query of a search",
    b"KWSVECT": "encrypted vectors for a search index",
    b"KWSANSW": "the answer to a query of a search",
    b"KWSDIRS": "the directory of a search index, for its clients",
    b"KWtsum\0": "a message of a threshold sum",
    POOL: "a pool of precomputed encryptions",
}
"""What other files are, by their first letters without a version."""

SECRET_FILES = frozenset({"operator.key"})
SECRET = "SECRET: it stays with its owner"

FIELDS = {
    "log_n": "log2 of the ring degree",
    "q_count": "ciphertext primes",
    "p_count": "special primes",
    "log_scale": "bits of the scale",
    "created": "compiled",
    "keys_without_a_plan": "keys, one for every rotation",
}
"""What the fields of the engine are called; the others have their names."""

COLUMNS = [Column("field", "field"), Column("value", "value")]
KEY_COLUMNS = [
    Column("element", "element"),
    Column("rotation", "rotation", "number"),
    Column("level", "level", "number"),
    Column("alpha", "alpha", "number"),
    Column("seeded", "seeded"),
    Column("bytes", "bytes", "bytes"),
]
FILE_COLUMNS = [Column("file", "file"), Column("kind", "kind"), Column("bytes", "bytes", "bytes")]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "file",
        type=Path,
        metavar="FILE",
        help="a Keywright file, a folder of such files, or an ONNX model",
    )
    model = parser.add_argument_group("for an ONNX model")
    add_fit_arguments(model)
    add_preset_argument(model)
    add_batch_argument(model)


def run(options: argparse.Namespace, terminal: Terminal) -> None:
    """Print the header of an object, and the keys of a set."""
    path: Path = options.file
    if path.is_dir():
        _list(path, terminal)
        return
    require_file(path)
    if path.suffix == ".onnx":
        compiled = compile_model(path, options, terminal, batch=options.batch or 1)
        print_report(compiled, terminal, title=str(path))
        print_fit(compiled.program, terminal)
        return
    program = compiler.load(path) if zipfile.is_zipfile(path) else None
    described = _describe(path) if program is None else _program(path, program)
    if terminal.json:
        terminal.record(described)
        return
    keys = described.pop("keys") if isinstance(described.get("keys"), list) else []
    if described.get("secret"):
        terminal.text(SECRET)
    rows: list[dict[str, Value]] = [
        {"field": FIELDS.get(field, field.replace("_", " ")), "value": _shown(field, value)}
        for field, value in described.items()
        if field != "fit" and value not in (None, "0 entries")
    ]
    terminal.table(COLUMNS, rows, title=str(path))
    if program is not None:
        print_fit(program, terminal)
    if keys:
        terminal.table(KEY_COLUMNS, keys)


def _list(folder: Path, terminal: Terminal) -> None:
    """Print what the files of a folder are."""
    rows: list[dict[str, Value]] = []
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            secret = False
            try:
                if zipfile.is_zipfile(path):
                    with zipfile.ZipFile(path) as archive:
                        kind = "a program" if "program.json" in archive.namelist() else "other"
                else:
                    described = _describe(path)
                    kind, secret = str(described["kind"]), bool(described["secret"])
            except (CommandError, FormatError, zipfile.BadZipFile):
                kind = "other"
            size = path.stat().st_size
            rows.append(
                {"file": str(path.relative_to(folder)), "kind": kind, "bytes": size, "secret": secret}
            )
    if not rows:
        raise CommandError(f"{folder} is a folder without files; name another")
    terminal.table(FILE_COLUMNS, rows, title=str(folder))
    for row in rows:
        if row["secret"]:
            terminal.text(f"{row['file']}: {SECRET}")


def _describe(path: Path) -> dict[str, Any]:
    """Return what a file holds that is not a program.

    Raises:
        CommandError: it is not a Keywright file.
        FormatError: it is damaged.
    """
    kind = _in_state(path)
    if kind is not None:
        return {"kind": kind, "bytes": path.stat().st_size, "secret": path.name in SECRET_FILES}
    with path.open("rb") as file:
        head = file.read(len(POOL))
    if head.startswith(MAGIC):
        array = load_array(path)
        return {
            "kind": "an array of numbers",
            "bytes": path.stat().st_size,
            "secret": False,
            "shape": " x ".join(map(str, array.shape)) or "one number",
        }
    if head in MESSAGES:
        return {"kind": MESSAGES[head], "bytes": path.stat().st_size, "secret": head == POOL}
    if head.lstrip()[:1] == b"{":
        return _json(path)
    if not head.startswith(b"\x89KWR"):
        raise CommandError(
            f"{path} is not a Keywright file; name one that a command or the package has written, or a model "
            "that ends in .onnx"
        )
    described, size = kw.keys.inspect(path), path.stat().st_size
    # A set that is being uploaded has fewer.
    if size > described["bytes"]:
        raise FormatError(
            f"{path} has {size} bytes, and its header states {described['bytes']}; get it again",
            code="length",
            found=size,
            expected=described["bytes"],
        )
    return described


def _in_state(path: Path) -> str | None:
    """Return what a file of a service's state is; None for others, and for files that say it themselves."""
    kind = STATE_FILES.get(path.name) or JOB_FILES.get(path.suffix)
    if kind is None:
        return None
    for folder in path.absolute().parents[: 1 if path.name in STATE_FILES else 4]:
        try:
            form = read_json_file(folder / "state.json", STATE)["format"]
        except (OSError, ValueError, TypeError, KeyError, KeywrightError):
            continue
        if str(form).startswith("keywright-state-"):
            return kind
    return None


def _json(path: Path) -> dict[str, Any]:
    """Return the kind of a file in JSON, its numbers and texts, and the lengths of its lists."""
    try:
        entry = read_json_file(path, LIMITS)
    except ValueError as error:
        raise CommandError(f"{path} cannot be read: {error}; name another file") from None
    form = entry.get("format") if isinstance(entry, dict) else None
    name, _, version = form.rpartition("-") if isinstance(form, str) else ("", "", "")
    kind = JSON_KINDS.get(name if version.isdigit() else str(form))
    if kind is None:
        raise CommandError(f"{path} is JSON, but not a Keywright file; name another file")
    out: dict[str, Any] = {"kind": kind, "bytes": path.stat().st_size, "secret": False}
    for field, value in entry.items():
        if isinstance(value, str | int | float | bool):
            out[field] = value if not isinstance(value, str) else value[:80]
        elif isinstance(value, list | dict):
            out[field] = quantity(len(value), "entry", "entries")
    return out


def _program(path: Path, program: compiler.Program) -> dict[str, Any]:
    return {
        "kind": "a program",
        "bytes": path.stat().st_size,
        "secret": False,
        "slots": program.slots,
        "batch": program.batch,
        "input_shape": " x ".join(map(str, program.input.shape)),
        "output_shape": " x ".join(map(str, program.output.shape)),
        "input_range": "any"
        if program.input.range is None
        else "{:.6g} to {:.6g}".format(*program.input.range),
        "input_level": program.input.level,
        "output_level": program.output.level,
        "instructions": len(program.instructions),
        "key_switches": sum(switch.count for switch in program.key_switches),
        "keys_without_a_plan": len(program.required_keys),
    } | ({"fit": fit_record(program)} if program.fit_report is not None else {})


def _shown(field: str, value: Value) -> str:
    if field == "created" and isinstance(value, int) and 0 < value < 1 << 47:
        return datetime.fromtimestamp(value / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else str(value)
