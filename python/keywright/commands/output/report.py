"""Prints the costs of a compiled model as a table."""

from dataclasses import replace

from keywright.commands.terminal import Column, Terminal
from keywright.model import Model

COLUMNS = [Column("what", "what"), Column("value", "value")]


def print_report(compiled: Model, terminal: Terminal, *, title: str, seconds: float | None = None) -> None:
    """Print ring, levels, keys, bytes and time; `print_fit` prints how closely it follows the model.

    Args:
        seconds: predicted time of a batch with the keys of a plan, instead of a key for every rotation.
    """
    with terminal.progress("planning keys", None):
        report = compiled.report
    if seconds is not None:
        report = replace(report, run=replace(report.run, seconds=seconds))
    if terminal.json:
        error = report.encrypted_error
        share = None if error is None else {"share": error.share, "output": error.worst}
        terminal.record({"report": report.figures | {"encrypted_error": share}})
        return
    rows = [
        {"what": name, "value": text}
        for name, text in report.lines.items()
        if name != "fit" and not name.startswith("warning")
    ]
    terminal.table(COLUMNS, rows, title=title)
