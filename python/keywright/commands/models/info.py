"""Describe a file: parameters, keys, ciphertexts, programs; for a model, what compiling it would give."""

import argparse
import zipfile
from pathlib import Path
from typing import Any

import keywright as kw
from keywright import compiler
from keywright._reading.arrays import require_file
from keywright.commands.helpers.arguments import add_batch_argument, add_preset_argument
from keywright.commands.helpers.errors import CommandError
from keywright.commands.helpers.fit import add_fit_arguments, fit_record, print_fit, read_fit
from keywright.commands.output.report import print_report
from keywright.commands.terminal import Column, Terminal, Value


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("file", type=Path, metavar="FILE", help="any file of Keywright, or an ONNX model")
    model = parser.add_argument_group("for an ONNX model")
    add_fit_arguments(model)
    add_preset_argument(model)
    add_batch_argument(model)


def run(options: argparse.Namespace, terminal: Terminal) -> None:
    """Print the header of an object, and the keys of a set."""
    path: Path = options.file
    if path.is_dir():
        raise CommandError(f"{path} is a folder; name one of its files")
    require_file(path)
    if path.suffix == ".onnx":
        with terminal.progress("compiling", None):
            compiled = kw.compile(
                path, parameters=options.preset, batch=options.batch or 1, fit=read_fit(options)
            )
        print_report(compiled, terminal, title=str(path))
        print_fit(compiled.program, terminal)
        return
    program = compiler.load(path) if zipfile.is_zipfile(path) else None
    described = kw.keys.inspect(path) if program is None else _program(path, program)
    if terminal.json:
        terminal.record(described)
        return
    keys = described.pop("keys", [])
    columns = [Column("field", "field"), Column("value", "value")]
    rows = [
        {"field": field.replace("_", " "), "value": _shown(value)}
        for field, value in described.items()
        if field != "fit"
    ]
    terminal.table(columns, rows, title=str(path))
    if program is not None:
        print_fit(program, terminal)
    if keys:
        headings = [
            Column("element", "element"),
            Column("rotation", "rotation", "number"),
            Column("level", "level", "number"),
            Column("alpha", "alpha", "number"),
            Column("seeded", "seeded"),
            Column("bytes", "bytes", "bytes"),
        ]
        terminal.table(headings, keys)


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
        "evaluation_keys": len(program.required_keys),
    } | ({"fit": fit_record(program)} if program.fit_report is not None else {})


def _shown(value: Value) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else str(value)
