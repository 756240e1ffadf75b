"""How all tests in Python run: one thread of the engine a process, slow files first, snippets as tests."""

from __future__ import annotations

import gc
import math
import os
import sys
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

# Before the engine is imported. Processes share the cores; a test that needs threads sets their number.
for _variable in ("RAYON_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")

ROOT = Path(__file__).parent
PAGES = {
    path
    for pattern in ("README.md", "docs/*.md", "docs/[!r]*/*.md", "docs/reference/*.md")
    for path in ROOT.glob(pattern)
} | {ROOT / "docs/reproduction/models.md", ROOT / "docs/reproduction/peers.md"}

NO_TOOL_HELPS = (
    "torch is not installed",  # half a gigabyte or more
    "onnxscript is not installed",
    "does not read models of opset",
    "node's fetch reads them for ever",
    "this client counts the bytes itself",
    "this client reads the fields that it knows",
    "these are the tests within",
    "no file system may be mounted here",
    "only root can give a pipe to another user",
    "there is no actionlint",
)
"""Reasons to skip a test that hold for `make test-full` too."""


class Page(pytest.File):
    """A page of the documentation with snippets."""

    def collect(self) -> Iterator[pytest.Item]:
        """One test for all: later snippets use what earlier ones leave."""
        yield Snippets.from_parent(self, name="snippets")


class Snippets(pytest.Item):
    """The snippets of a page."""

    def runtest(self) -> None:
        """Run them in a process of their own, which changes its folder and the path of programs."""
        from run_snippets import run_apart

        run_apart(self.path)

    def reportinfo(self) -> tuple[Path, int, str]:
        """Where it is."""
        return self.path, 0, f"snippets of {self.path.name}"


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Pages are files of tests."""
    if file_path in PAGES and "```" in file_path.read_text(encoding="utf-8"):
        return Page.from_parent(parent, path=file_path)
    return None


def worker(config: pytest.Config) -> int:
    """The number of a process among three that read the files of tests in different orders: then two of them
    do not both compile the same file, with its assertions."""
    name = getattr(config, "workerinput", {}).get("workerid", "gw0")
    return int(name.removeprefix("gw")) % 3


def pytest_configure(config: pytest.Config) -> None:
    """The second process reads the paths of the command line from the last to the first."""
    if worker(config) == 1:
        config.args.reverse()
    gc.disable()  # what is collected stays: to look for garbage in it takes a fifth of the time


@pytest.hookimpl(wrapper=True)
def pytest_collect_directory(parent: pytest.Collector) -> Generator[None, Any, Any]:
    """The second and the third process read the entries of folders from the last to the first."""
    folder = yield
    if folder is not None and worker(parent.config) > 0:
        collect = folder.collect
        folder.collect = lambda: [*collect()][::-1]
    return folder


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files that take longest start first, after those of which the record knows nothing, as they may be new:
    no process is left with one of them at the end. All processes must have the same order."""
    from durations import load

    seconds = load()
    names = {item.path: item.path.relative_to(ROOT).as_posix() for item in items}
    items.sort(key=lambda item: (-seconds.get(names[item.path], math.inf), names[item.path]))


def pytest_collection_finish() -> None:
    """From here on, garbage is looked for again, but not among what was collected."""
    gc.freeze()
    gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[Any]) -> Generator[None, Any, Any]:
    """With `KEYWRIGHT_SKIPS=error`, a test that is skipped because a tool is missing fails."""
    report = yield
    if report.skipped and not hasattr(report, "wasxfail") and os.environ.get("KEYWRIGHT_SKIPS") == "error":
        reason = str(report.longrepr)
        if sys.platform == "linux" and not any(part in reason for part in NO_TOOL_HELPS):
            report.outcome, report.longrepr = "failed", f"skipped, which is an error here: {reason}"
    return report
