"""Both lanes of tests: what they install, what they leave out, and the order of files."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import durations
import full_tools
import install_pins
import pytest
import tested_extension
import yaml  # type: ignore[import-untyped]

ROOT = Path(__file__).resolve().parents[1]
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")


def goals(name: str) -> set[str]:
    """The words of a variable of the Makefile."""
    match = re.search(rf"^{name} := ((?:.*\\\n)*.*)$", MAKEFILE, re.MULTILINE)
    assert match is not None
    return set(match[1].replace("\\\n", " ").split())


def test_every_goal_of_the_second_lane_says_why_it_is_there() -> None:
    comment = MAKEFILE[MAKEFILE.index("# What no change needs at once") : MAKEFILE.index("FULL := ")]
    named = re.findall(r"^#   ((?:[a-z0-9-]+, )*[a-z0-9-]+)(?: |$)", comment, re.MULTILINE)
    listed = {goal for line in named for goal in line.split(", ")}
    assert listed == goals("FULL")
    for goal in goals("FULL"):
        assert re.search(rf"^{goal}:", MAKEFILE, re.MULTILINE), goal


def test_the_second_lane_runs_weekly_and_before_a_release() -> None:
    weekly = yaml.safe_load((ROOT / ".github/workflows/weekly.yml").read_text(encoding="utf-8"))
    commands = [step.get("run", "") for step in weekly["jobs"]["full"]["steps"]]
    assert commands[-2] == "make full-system"
    assert commands[-1].startswith("make test-full")
    assert re.search(r"^release-check: test-full\b", MAKEFILE, re.MULTILINE)


def test_every_tool_of_the_second_lane_has_a_package() -> None:
    packages = (ROOT / "requirements/full.apt").read_text(encoding="utf-8").split("\n")
    needed = {*full_tools.TOOLS.values(), *full_tools.LIBRARIES.values(), "postgresql"}
    assert needed <= set(packages)


def test_a_missing_tool_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert "valgrind: `make full-system` installs valgrind" in full_tools.missing()


LISTED = """:env:.cert='/etc/authorities.pem'
global.find-links='/wheels /more'
global.index-url='https://first/simple'
global.timeout='60'
install.index-url='https://second/simple'
list.format='columns'
"""


def test_settings_of_pip_are_handed_to_uv() -> None:
    configured = install_pins.settings(LISTED)
    assert configured["cert"] == "/etc/authorities.pem"
    assert install_pins.options(configured) == [
        "--find-links=/wheels", "--find-links=/more", "--index-url=https://second/simple",
    ]  # fmt: skip
    assert install_pins.options({"no-index": "true"}) == ["--no-index"]
    assert install_pins.options({"no-index": "false"}) == []


@pytest.mark.parametrize("name", ["client-cert", "proxy", "no-binary", "keyring-provider", "platform"])
def test_a_setting_that_uv_does_not_have_is_left_to_pip(name: str) -> None:
    assert install_pins.options({name: "x"}) is None


@pytest.mark.parametrize("configured", ["", "global.proxy='http://localhost:1'\n"])
def test_pins_are_installed_with_hashes(monkeypatch: pytest.MonkeyPatch, configured: str) -> None:
    called: list[list[str]] = []

    def run(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        called.append(command)
        return subprocess.CompletedProcess(command, 0, configured, "")

    monkeypatch.setattr(subprocess, "run", run)
    done = install_pins.install("python", [Path("requirements/dev.txt")])
    assert called[-1] == done
    assert {"--require-hashes", "--no-deps", "requirements/dev.txt"} <= set(done)
    assert ("uv" in done) is (configured == "")


def test_one_pin_of_uv_is_in_the_list() -> None:
    (pin,) = install_pins.PIN.findall((ROOT / "requirements/dev.txt").read_text(encoding="utf-8"))
    assert re.fullmatch(r"uv==\S+ \\\n(    (--hash=|#).*\n)+", pin)


def test_the_wheel_has_what_the_project_states(tmp_path: Path) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    with zipfile.ZipFile(tested_extension.wheel(ROOT, tmp_path)) as archive:
        (info,) = {name.partition("/")[0] for name in archive.namelist() if "/" in name}
        metadata = archive.read(f"{info}/METADATA").decode()
        programs = archive.read(f"{info}/entry_points.txt").decode()
        assert archive.read("keywright.pth").decode().strip() == str(ROOT / "python")
    assert "keywright = keywright.cli:main" in programs
    assert re.findall("^Provides-Extra: (.*)$", metadata, re.MULTILINE) == list(
        project["optional-dependencies"]
    )
    bare = [
        line for line in re.findall("^Requires-Dist: (.*)$", metadata, re.MULTILINE) if "extra ==" not in line
    ]
    assert bare == project["dependencies"]


def test_the_wheel_can_be_installed(tmp_path: Path) -> None:
    wheel = tested_extension.wheel(ROOT, tmp_path)
    command = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--no-deps",
        "--no-index",
        "--target",
        str(tmp_path / "to"),
    ]
    done = subprocess.run([*command, str(wheel)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "to" / "keywright.pth").is_file()


REPORT = """<testsuites><testsuite>
<testcase classname="scripts.test_lanes" name="a" time="1.5"/>
<testcase classname="scripts.test_lanes.Group" name="b" time="0.25"/>
<testcase classname="python.tests.plan.optimum.test_bound" name="c" time="4"/>
<testcase classname="docs.how-to.bfv.md" name="snippets" time="2"/>
</testsuite></testsuites>"""


def test_durations_are_those_of_files(tmp_path: Path) -> None:
    (tmp_path / "report.xml").write_text(REPORT)
    totals = durations.totals(tmp_path / "report.xml")
    assert totals == {
        "scripts/test_lanes.py": 1.75,
        "python/tests/plan/optimum/test_bound.py": 4.0,
        "docs/how-to/bfv.md": 2.0,
    }


def test_the_record_is_of_these_tests() -> None:
    record = durations.load()
    gone = [path for path in record if not (ROOT / path).is_file()]
    assert record
    assert len(gone) <= len(record) / 10, f"run `make durations`: {gone} do not exist"


NAMES = {"PIL": "pillow", "sklearn": "scikit-learn", "xgboost": "xgboost-cpu"}
"""Modules that have another name than the package that installs them."""


def optional_modules(path: Path) -> set[str]:
    """Modules of others without which tests are skipped or cases left out."""
    modules = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.Call(ast.Name(name) | ast.Attribute(_, name), [ast.Constant(str() as module)]):
                if name in ("importorskip", "find_spec"):
                    modules.add(module.partition(".")[0])
    return modules - {"studies"}


def test_the_second_lane_installs_every_package_that_tests_are_skipped_without() -> None:
    lists = ["dev", *goals("RAY_EXTRAS"), *goals("FULL_GROUPS")]
    pins = "\n".join((ROOT / "requirements" / f"{name}.txt").read_text(encoding="utf-8") for name in lists)
    folders = [ROOT / name for name in ("python/tests", "benchmarks/tests", "scripts")]
    modules = set().union(*(optional_modules(path) for folder in folders for path in folder.rglob("*.py")))
    excused = re.findall(r'"(\w+) is not installed"', (ROOT / "conftest.py").read_text(encoding="utf-8"))
    assert {"pandas", "ray", "xgboost"} <= modules
    packages = {NAMES.get(module, module) for module in modules - {*excused}}
    assert not packages - {*re.findall(r"^([a-z0-9-]+)==", pins, re.MULTILINE)}


TESTS = """import pytest

@pytest.mark.skip("no tool")
def test_a(): pass

def test_b(): pytest.skip("torch is not installed")

@pytest.mark.skip("no server")
def test_c(): pass

@pytest.mark.xfail
def test_d(): assert False
"""


def test_a_skip_is_an_error_in_the_second_lane(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text((ROOT / "conftest.py").read_text(encoding="utf-8"))
    (tmp_path / "test_it.py").write_text(TESTS)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(tmp_path)]
    command += ["-o", f"pythonpath={ROOT / 'scripts'}", str(tmp_path)]
    for setting, expected in (("", "3 skipped, 1 xfailed"), ("error", "1 skipped, 1 xfailed, 2 errors")):
        environment = {"PATH": "", "KEYWRIGHT_SKIPS": setting}
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, cwd=tmp_path, env=environment
        )
        assert expected in done.stdout, done.stdout + done.stderr


def test_a_test_that_waits_for_ever_ends_with_the_place_where_it_waits(tmp_path: Path) -> None:
    stated = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    settings = stated["tool"]["pytest"]["ini_options"]
    assert settings["faulthandler_timeout"] > 10 * max(durations.load().values())
    assert settings["faulthandler_exit_on_timeout"]
    (tmp_path / "test_it.py").write_text("import threading\n\ndef test_it(): threading.Event().wait()\n")
    command = [sys.executable, "-m", "pytest", "-c", str(ROOT / "pyproject.toml"), "--rootdir", str(tmp_path)]
    command += ["--noconftest", "-p", "no:cacheprovider", "-o", "faulthandler_timeout=0.2", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "Timeout" in done.stderr
    assert "in test_it" in done.stderr


LIMITED = {"communicate", "join", "poll", "result", "settimeout", "wait", "wait_for"}
"""Methods that take seconds. Fewer than five are for what must not happen meanwhile, or are repeated."""


def gives_up(node: ast.AST) -> bool:
    """Whether an expression ends a wait after a number of seconds, or makes the time of its end."""
    match node:
        case ast.BinOp(ast.Call(ast.Attribute(ast.Name("time"), "monotonic")), ast.Add()):
            return True
        case ast.Call(ast.Attribute(_, name), [ast.Constant(int() | float() as seconds)]) if name in LIMITED:
            return seconds >= 5
        case ast.Call(_, _, keywords):
            limits = [ast.unparse(word.value) for word in keywords if word.arg in ("timeout", "timeout_s")]
            return any(not re.fullmatch(r"[0-4](\.\d+)?", limit) for limit in limits)
    return False


@pytest.mark.parametrize("folder", ["python/tests", "benchmarks/tests", "scripts"])
def test_a_test_waits_as_long_as_it_takes(folder: str) -> None:
    """Seconds that are enough on an idle machine are not on a loaded one; pytest ends what waits for ever."""
    limits = [
        f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 0)}"
        for path in (ROOT / folder).rglob("*.py")
        if path.name.startswith("test_") or "tests" in path.parts
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if gives_up(node)
    ]
    assert not limits, f"these give up after some seconds: {limits}"


def test_a_page_is_waited_for_as_long_as_it_takes() -> None:
    """Playwright's own limit is 30 s, unless it is 0."""
    sources = [path.read_text(encoding="utf-8") for path in (ROOT / "web/tests").glob("*test.mjs")]
    sources.append((ROOT / "web/tests/harness.mjs").read_text(encoding="utf-8"))
    assert not re.search(r"timeout:(?! *0\b)", "".join(sources))
    for source in sources:
        assert source.count(".newContext(") <= source.count(".setDefaultTimeout(0)")


FENCE = re.compile(r"^ *//[/!] ```(\w*)", re.MULTILINE)
UNIT_TESTS = re.compile(r"#\[test\]|#\[cfg\(test\)\]|\bproptest!")


def manifests() -> list[Path]:
    """The manifests of the workspace's crates."""
    members = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))["workspace"]["members"]
    return sorted(path for member in members for path in ROOT.glob(f"{member}/Cargo.toml"))


@pytest.mark.parametrize("manifest", manifests(), ids=lambda path: path.parent.name)
def test_a_harness_is_compiled_where_there_are_unit_tests_only(manifest: Path) -> None:
    """`test = false` and `doctest = false` would silence tests; without them, an empty harness is linked."""
    stated = tomllib.loads(manifest.read_text(encoding="utf-8"))
    sources = [path.read_text(encoding="utf-8") for path in manifest.parent.glob("src/**/*.rs")]
    unit = any(UNIT_TESTS.search(source) for source in sources)
    fences = [language for source in sources for language in FENCE.findall(source)[::2]]
    library = stated.get("lib", {})
    assert library.get("doctest", True) or not {"", "rust"} & set(fences)
    if (manifest.parent / "src/lib.rs").is_file():
        assert library.get("test", True) == unit
    programs = {program["name"]: program for program in stated.get("bin", [])}
    assert {path.stem for path in manifest.parent.glob("src/bin/*.rs")} <= set(programs)
    for name, program in programs.items():
        path = manifest.parent / program.get("path", f"src/bin/{name}.rs")
        assert program["test"] == bool(UNIT_TESTS.search(path.read_text(encoding="utf-8")))
