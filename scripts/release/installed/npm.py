"""The npm package, in Node."""

import shutil
from pathlib import Path

from release.checkout import ROOT
from release.installed.trial import environment, fresh, need, one, run

PROGRAM = Path(__file__).with_name("use_package.mjs")


def try_npm_package(files: Path, scratch: Path) -> None:
    """Install the package from its archive; it makes the secret that the native build makes."""
    need("npm", "node")
    package = one(files, "keywright-client-*.tgz")
    (fresh(scratch) / "package.json").write_text('{"type": "module"}', encoding="utf-8")
    clean = environment()
    run("npm", "install", "--offline", "--no-audit", "--no-fund", package, cwd=scratch, env=clean)
    shutil.copy(ROOT / "vectors" / "browser.txt", scratch)
    shutil.copy(PROGRAM, scratch)
    print(run("node", PROGRAM.name, cwd=scratch, env=clean), end="")
