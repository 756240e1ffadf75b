"""Dependencies between parts of the project.

Crates depend on nothing outside of `crates/`. No wheel has the insecure scheme. Rooms of the Python package
import only rooms below them, nothing imports benchmarks, scripts or tests. In the package and in every crate,
files and folders do not name each other in a circle. No folder of modules is too full, no function too long.
"""

import ast
import re
import subprocess
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any

import pytest
from rust_modules import Crate

ROOT = Path(__file__).parents[1]
CRATES = ROOT / "crates"
PACKAGE = ROOT / "python" / "keywright"

ABOVE = [ROOT / "benchmarks", ROOT / "scripts", ROOT / "python" / "tests"]
"""Folders that may depend on crates and the package; the reverse is not allowed."""

ROOMS = (
    "_copies",
    "_units",
    "errors",
    "_processes",
    "_files",
    "_interrupts",
    "_progress",
    "_reading",
    "insecure",
    "minimax",
    "values",
    "bfv",
    "thin",
    "keys",
    "security",
    "federated",
    "search",
    "program",
    "plan",
    "runtime",
    "model/folder",
    "model/served",
    "model/exchange",
    "model/executable",
    "model/client",
    "model/server",
    "model/session",
    "compiler",
    "model",
    "client",
    "serve",
    "__init__",
    "commands",
    "cli",
    "__main__",
)
"""The folders and files of the package, from the ground up: each imports only those before it. What serves a
model or talks to its server is below the compiler, which makes models."""

FLOORS = sorted({path.parent.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py")})
"""Folders whose subfolders and files import in one direction only: all."""

MAX_MODULES = 8
"""Maximum number of modules in a folder, without the file that lists them or is the folder's own."""

MAX_LINES = 80
"""Maximum number of lines of a function of the package, with its signature and docstring."""

MAX_FILE_LINES = 600
"""Maximum number of lines of a source file."""

LONG_FILES = {
    "python/keywright/_core.pyi": (1500, "the types of an extension module are one file"),
    "benchmarks/studies/ledger/claims/boosted_deflation.toml": (700, "a list of the claims of a paper"),
    "hardware/dv/faults.toml": (700, "a list of faults"),
    "hardware/rtl/client/client_twiddle_rom.sv": (700, "a generated table"),
    "hardware/rtl/key_switch/key_switch.sv": (700, "a module whose processes share its registers"),
}
"""Files that a reader does not read from top to bottom: the maximum of each, and why."""

LATE = {"highspy", "onnx.reference", "shtab"}
"""Modules of others that take long to import, and that few commands, clients and workers use."""

OWN_FILES = frozenset(
    {"__init__.py", "__main__.py", "conftest.py", "lib.rs", "main.rs", "mod.rs", "tests.rs"}
)

LIBRARIES = (
    "python/keywright",
    *sorted(f"crates/{path.parent.name}/src" for path in CRATES.glob("*/Cargo.toml")),
    "benchmarks/harness",
    "benchmarks/suite/src",
    "fuzz/src",
    "hardware/vectors/src",
    "python/tests",
)
"""Folders of modules. All others are collections: examples, scripts, studies, tests of crates, vectors and
blocks of hardware, where each file is run, instantiated or read by itself and found by its name."""


def manifest(path: Path) -> dict[str, Any]:
    """A parsed TOML file."""
    return tomllib.loads(path.read_text(encoding="utf-8"))


def dependencies(crate: dict[str, Any]) -> dict[str, Any]:
    """Those of a crate, for any target, with those of its tests and its build."""
    tables = [crate, *crate.get("target", {}).values()]
    kinds = ("dependencies", "dev-dependencies", "build-dependencies")
    return {
        name: requirement
        for table in tables
        for kind in kinds
        for name, requirement in table.get(kind, {}).items()
    }


@pytest.mark.parametrize("name", sorted(path.parent.name for path in CRATES.glob("*/Cargo.toml")))
def test_a_crate_depends_on_no_folder_outside_of_crates(name: str) -> None:
    shared = manifest(ROOT / "Cargo.toml")["workspace"]["dependencies"]
    for dependency, requirement in dependencies(manifest(CRATES / name / "Cargo.toml")).items():
        inherited = isinstance(requirement, dict) and requirement.get("workspace", False)
        base, entry = (ROOT, shared[dependency]) if inherited else (CRATES / name, requirement)
        if isinstance(entry, dict) and "path" in entry:
            assert (base / entry["path"]).resolve().is_relative_to(CRATES), dependency


@pytest.mark.parametrize("name", ["pool", "python"])
def test_the_insecure_scheme_is_a_feature_that_nothing_turns_on(name: str) -> None:
    crate = manifest(CRATES / name / "Cargo.toml")
    features = crate["features"]
    assert "insecure" in features
    assert set(features) == {"insecure"}, (
        "a feature that turns another on, or a default one, is looked at here"
    )
    for dependency, requirement in crate["dependencies"].items():
        asked = requirement.get("features", []) if isinstance(requirement, dict) else []
        assert "insecure" not in asked, dependency


def test_a_wheel_has_no_insecure_scheme() -> None:
    maturin = manifest(ROOT / "pyproject.toml")["tool"]["maturin"]
    assert maturin["manifest-path"] == "crates/python/Cargo.toml"
    assert not {"features", "all-features", "cargo-extra-args"} & set(maturin)
    for crate in CRATES.glob("*/Cargo.toml"):
        dependency = manifest(crate).get("dependencies", {}).get("keywright-pool")
        assert dependency in (None, {"workspace": True}), crate
    shared = manifest(ROOT / "Cargo.toml")["workspace"]["dependencies"]["keywright-pool"]
    assert "features" not in shared


def test_no_crate_reads_a_file_of_benchmarks_scripts_or_tests() -> None:
    literal = re.compile(r'"/?(\.\./[^"\n]*)"')
    for source in (*CRATES.rglob("*.rs"), *CRATES.rglob("Cargo.toml")):
        crate = CRATES / source.relative_to(CRATES).parts[0]
        above = [*ABOVE, *(() if source.is_relative_to(crate / "tests") else [crate / "tests"])]
        for named in literal.findall(source.read_text(encoding="utf-8")):
            for base in (source.parent, crate):
                read = (base / named).resolve()
                assert not any(read.is_relative_to(folder) for folder in above), (source, named)


def modules() -> dict[str, Path]:
    """The files of the package, by the name that they are imported under."""
    modules = {}
    for path in PACKAGE.rglob("*.py"):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        modules[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return modules


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    """The whole of a file."""
    return tuple(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


def imports(name: str, path: Path) -> Iterator[tuple[str, str]]:
    """Every import of a file, wherever it stands, for types alone as well: the module and the name taken from
    it, which is empty where the module is taken."""
    package = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
    for node in nodes(path):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
            called = node.func.id if isinstance(node.func, ast.Name) else node.func.attr
            if called.endswith("import_module") and isinstance(node.args[0], ast.Constant):
                yield str(node.args[0].value), ""
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            yield from ((module, alias.name) for alias in node.names)


@cache
def arrows() -> dict[Path, set[Path]]:
    """From each file of the package to those that it imports."""
    files = modules()
    arrows: dict[Path, set[Path]] = {}
    for name, path in files.items():
        targets = (files.get(f"{module}.{taken}", files.get(module)) for module, taken in imports(name, path))
        arrows[path] = {target for target in targets if target is not None} - {path}
    return arrows


def test_what_few_processes_use_is_imported_where_it_is_used() -> None:
    """At the top of files, these modules were a seventh of the time in which a command or a worker starts."""
    early = []
    for path in {*modules().values()} - {PACKAGE / "commands" / "completion.py"}:
        file = nodes(path)[0]
        assert isinstance(file, ast.Module)
        for node in file.body:
            names = {alias.name for alias in node.names} if isinstance(node, ast.Import) else set()
            if LATE & (names | ({node.module} if isinstance(node, ast.ImportFrom) else set())):
                early.append((path, node.lineno))
    assert not early


def circle(graph: Mapping[Path, Iterable[Path]]) -> list[Path]:
    """The members of one circle, the first again at the end; nothing where there is none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def room_of(path: Path) -> str:
    """The room of a file: the longest name of `ROOMS` that it is in; empty if it is in none."""
    name = path.relative_to(PACKAGE).with_suffix("").as_posix()
    return max((room for room in ROOMS if f"{name}/".startswith(f"{room}/")), key=len, default="")


def test_every_file_of_the_package_has_its_room() -> None:
    rooms = {room_of(path) for path in PACKAGE.rglob("*.py")}
    assert rooms == {*ROOMS}


def test_rooms_of_the_package_import_only_those_below() -> None:
    upward = [
        (path, target)
        for path, targets in arrows().items()
        for target in targets
        if ROOMS.index(room_of(target)) > ROOMS.index(room_of(path))
    ]
    assert not upward


def test_no_files_of_the_package_import_each_other_in_a_circle() -> None:
    assert not circle(arrows())


def test_commands_call_what_packages_export() -> None:
    """The command line calls the interface that Python's users have. It shares helpers, such as that which
    writes files, and `keywright bench` measures the engine itself."""
    shared = ("_files", "_units", "_progress", "_processes", "_reading.arrays", "_reading.documents")
    helpers = {f"keywright.{name}" for name in shared}
    inside = []
    for name, path in modules().items():
        if not name.startswith("keywright.commands."):
            continue
        for module, taken in imports(name, path):
            whole = module == "keywright" and not taken
            if whole or not module.startswith("keywright") or module.startswith("keywright.commands"):
                continue
            engine = module == "keywright._core" and taken.startswith("bench")
            if not engine and module not in helpers and taken not in exported(module):
                inside.append((path.name, module, taken))
    assert not inside


def exported(package: str) -> set[str]:
    """The names that a package exports, and its own public packages and modules."""
    path = PACKAGE.joinpath(*package.split(".")[1:]) / "__init__.py"
    if not path.exists():
        return set()
    names: set[str] = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            names |= set(ast.literal_eval(node.value))
    rooms = {entry.stem for entry in path.parent.iterdir() if not entry.name.startswith("_")}
    return names | (rooms if package == "keywright" else set())


def room_arrows(arrows: Mapping[Path, Iterable[Path]], floor: Path) -> dict[Path, set[Path]]:
    """The same arrows between the files and folders of one folder, each folder as one."""

    def room(path: Path) -> Path:
        return floor / path.relative_to(floor).parts[0]

    rooms: dict[Path, set[Path]] = {}
    for path, targets in arrows.items():
        if path.is_relative_to(floor):
            inside = {room(target) for target in targets if target.is_relative_to(floor)}
            rooms.setdefault(room(path), set()).update(inside - {room(path)})
    return rooms


@pytest.mark.parametrize("floor", FLOORS, ids=str)
def test_no_rooms_of_a_floor_import_each_other_in_a_circle(floor: str) -> None:
    assert not circle(room_arrows(arrows(), PACKAGE / floor))


def folders(library: str) -> list[Path]:
    """A folder of modules with all its subfolders."""
    top = ROOT / library
    return sorted({path.parent for kind in ("*.py", "*.rs") for path in top.rglob(kind)})


@pytest.mark.parametrize("library", LIBRARIES)
def test_no_folder_has_more_modules_than_a_reader_takes_in(library: str) -> None:
    assert folders(library)
    for folder in folders(library):
        kept = [path.name for path in folder.iterdir() if path.suffix in (".py", ".rs")]
        held = sorted({*kept} - OWN_FILES)
        # Programs of a crate, each started by its name.
        assert len(held) <= MAX_MODULES or folder.name == "bin", (folder, held)


def test_no_function_of_the_package_is_longer_than_a_reader_takes_in() -> None:
    lengths = {
        f"{path.relative_to(PACKAGE)}: {node.name}": node.end_lineno - node.lineno + 1
        for path in PACKAGE.rglob("*.py")
        for node in nodes(path)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno is not None
    }
    assert {name: length for name, length in lengths.items() if length > MAX_LINES} == {}


CRATE_NAMES = sorted(path.parents[1].name for path in CRATES.glob("*/src/lib.rs"))


def test_no_file_is_longer_than_a_reader_takes_in() -> None:
    kinds = {".c", ".h", ".mjs", ".py", ".pyi", ".rs", ".sh", ".sv", ".toml", ".ts"}
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    long = {}
    for name in tracked.stdout.splitlines():
        path = ROOT / name
        if path.suffix in kinds or path.name == "Makefile":
            lines = len(path.read_text(encoding="utf-8").splitlines())
            if lines > LONG_FILES.get(name, (MAX_FILE_LINES,))[0]:
                long[name] = lines
    assert not long
    assert all((ROOT / name).is_file() for name in LONG_FILES)


@cache
def crate_arrows(name: str) -> dict[Path, set[Path]]:
    """From each file of a crate to those that it names. Error types are left out: they are named
    everywhere, and name the types and bounds of all modules in their messages."""
    return {
        path: {target for target in targets if target.name != "error.rs"}
        for path, targets in Crate(CRATES / name / "src").arrows.items()
        if path.name != "error.rs"
    }


@pytest.mark.parametrize("name", CRATE_NAMES)
def test_no_modules_of_a_crate_name_each_other_in_a_circle(name: str) -> None:
    assert not circle(crate_arrows(name))


@pytest.mark.parametrize("name", CRATE_NAMES)
def test_no_rooms_of_a_crate_name_each_other_in_a_circle(name: str) -> None:
    arrows = crate_arrows(name)
    for floor in folders(f"crates/{name}/src"):
        assert not circle(room_arrows(arrows, floor)), floor


def test_the_arrows_of_a_crate_are_read_through_what_its_rooms_export(tmp_path: Path) -> None:
    sources = {
        "lib.rs": "mod kernels; mod ring; pub use kernels::ntt::Ntt; // use ring::Ring\n",
        "kernels/mod.rs": 'pub(crate) mod ntt;\nfn text() -> &\'static str { "crate::ring::Ring" }\n',
        "kernels/ntt.rs": "pub struct Ntt;\n#[cfg(test)]\nmod tests { use crate::ring::Ring; }\n",
        "ring.rs": "use std::fmt;\nuse crate::{Ntt};\npub struct Ring(Ntt);\n",
    }
    for name, text in sources.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    arrows = {
        path.relative_to(tmp_path).as_posix(): targets for path, targets in Crate(tmp_path).arrows.items()
    }
    assert arrows == {
        "lib.rs": set(),
        "kernels/mod.rs": set(),
        "kernels/ntt.rs": set(),
        "ring.rs": {tmp_path / "kernels/ntt.rs"},
    }
    (tmp_path / "kernels/ntt.rs").write_text(
        "pub struct Ntt(pub super::super::ring::Ring);\n", encoding="utf-8"
    )
    assert circle(Crate(tmp_path).arrows)


def test_the_package_imports_nothing_of_benchmarks_scripts_or_tests() -> None:
    outside = {"benchmarks", "scripts", "tests", "conftest"}
    for name, path in modules().items():
        for module, _ in imports(name, path):
            assert not outside & set(module.split(".")), (path, module)
