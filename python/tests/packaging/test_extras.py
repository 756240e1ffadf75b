"""The extras of the package are what pages and messages say, and what the code imports."""

import ast
import re
import subprocess
import sys
import tomllib
from collections import defaultdict
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[3]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]
PACKAGE = ROOT / "python" / "keywright"
PAGES = [
    *ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md"),
    *(ROOT / "container").iterdir(), *PACKAGE.rglob("*.py"),
]  # fmt: skip

NAMES = {"PIL": "pillow", "jwt": "pyjwt", "prometheus_client": "prometheus-client"}
"""Modules that have another name than what installs them."""

BROUGHT = {"anyio": "starlette", "google": "onnx"}
"""Modules that come with what is built on them: a version that fits comes from there."""

IMPORTED_BY_NAME = {"onnxscript", "scikit-learn", "skl2onnx", "torch"}
"""What `keywright.compiler` imports by the name of the library that a model is of."""


def names(requirements: list[str]) -> set[str]:
    """What requirements install."""
    parsed = [Requirement(line) for line in requirements]
    distributions = {each.name.lower().replace("_", "-") for each in parsed}
    # PyJWT's extra for signatures.
    return distributions | ({"cryptography"} if any("crypto" in each.extras for each in parsed) else set())


def imported() -> dict[str, set[str]]:
    """Packages of others that the code imports, and where."""
    imports = defaultdict[str, set[str]](set)
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            modules = []
            if isinstance(node, ast.Import):
                modules = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                modules = [node.module or ""]
            for module in modules:
                top = module.partition(".")[0]
                if top not in sys.stdlib_module_names and top != "keywright":
                    imports[NAMES.get(top, top)].add(path.relative_to(PACKAGE).parts[0])
    return imports


def test_all_that_is_imported_is_installed_by_the_package_or_an_extra() -> None:
    offered = names(PROJECT["dependencies"]).union(*map(names, EXTRAS.values()))
    for name, places in imported().items():
        assert BROUGHT.get(name, name) in offered, f"{name}, imported in {places}, is in no extra"


def test_every_extra_is_used() -> None:
    used = imported().keys() | IMPORTED_BY_NAME | {"keywright"}
    for extra, requirements in EXTRAS.items():
        assert names(requirements) <= used, f"[{extra}] installs {names(requirements) - used} for nobody"
    assert names(PROJECT["dependencies"]) <= used


def test_parts_need_their_own_extra_alone() -> None:
    """What the service imports is installed by its extras, and so on; other parts need none."""
    base = names(PROJECT["dependencies"])
    parts = {
        "serve": ("serve", "storage", "cluster"),
        "federated": ("federated",),
        "compiler": ("check", "sklearn", "torch"),
        "commands": ("images", "plot"),
    }
    for name, places in imported().items():
        for place in places:
            allowed = base.union(*(names(EXTRAS[extra]) for extra in parts.get(place, ())))
            assert BROUGHT.get(name, name) in allowed, f"{place} imports {name}, which its extras do not have"


def test_pages_and_messages_name_extras_that_exist() -> None:
    named = defaultdict[str, set[str]](set)
    for path in PAGES:
        if path.is_file():
            text = path.read_text(encoding="utf-8")
            raised = re.findall(r'PackageMissingError\([^,()]+, "([a-z]+)"\)', text)
            for listed in [*re.findall(r"keywright\[([a-z, ]+)\]", text), *raised]:
                for extra in listed.split(","):
                    named[extra.strip()].add(str(path))
    assert set(named) <= set(EXTRAS), {name: named[name] for name in named.keys() - EXTRAS.keys()}
    # An error about a missing library names the extra that has it.
    assert set(named) == set(EXTRAS)


def test_the_page_on_installing_lists_them() -> None:
    text = (ROOT / "docs" / "how-to" / "install.md").read_text(encoding="utf-8")
    listed = dict(re.findall(r"^\| `([a-z]+)` \| ([^|]+) \|", text, re.MULTILINE))
    assert list(listed) == sorted(EXTRAS)
    titles = {
        "starlette": "Starlette",
        "ray": "Ray",
        "flwr": "Flower",
        "torch": "PyTorch",
        "keywright": "`serve`",
        "prometheus-client": "Prometheus client",
    }
    for extra, requirements in EXTRAS.items():
        for name in names(requirements):
            title = titles.get(name, name).lower()
            assert title in listed[extra].lower(), f"the row of {extra} does not name {name}"


def test_a_command_without_its_libraries_says_which_to_install() -> None:
    """`keywright serve` ended in a traceback: its module is imported before the command runs."""
    script = "import sys; sys.modules['starlette'] = None; from keywright.cli import main; "
    ran = subprocess.run(
        [sys.executable, "-c", script + "sys.exit(main(['serve', 'model']))"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ran.returncode == 2
    assert "Traceback" not in ran.stderr
    assert "pip install 'keywright[serve]'" in ran.stderr
