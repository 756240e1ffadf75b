"""Each extra, installed from the wheel of this machine in an environment of its own, and used."""

import os
import platform
import sys
from pathlib import Path

from release.installed.trial import environment, fresh, one, run
from release.installed.wheel import PATTERNS, programs

USES = Path(__file__).parent / "uses"

EXTRAS: dict[str, tuple[str, ...]] = {
    "check": ("use_check.py",),
    "cluster": ("use_serve.py", "--ray", "local"),
    "federated": ("use_federated.py",),
    "images": ("use_images.py",),
    "plot": ("use_plot.py",),
    "serve": ("use_serve.py",),
    "simulation": ("use_simulation.py",),
    "sklearn": ("use_sklearn.py",),
    "storage": ("use_storage.py",),
    "torch": ("use_torch.py",),
}
"""What each extra brings is used by a program, with these arguments."""

LARGE = ("torch",)
"""Gigabytes: only tried if the variable EXTRAS names them."""


def try_extras(files: Path, scratch: Path) -> None:
    """Install and use the extras that the variable EXTRAS names; all but the large ones by default."""
    wheel = one(files, f"keywright-*-{PATTERNS[platform.system()]}{platform.machine().lower()}.whl")
    names = os.environ.get("EXTRAS", "").split() or [name for name in EXTRAS if name not in LARGE]
    fresh(scratch)
    for name in names:
        venv = scratch / name
        run(sys.executable, "-m", "venv", venv, cwd=scratch, env=environment())
        run(programs(venv) / "pip", "install", "--quiet", f"{wheel}[{name}]", cwd=scratch, env=environment())
        program, *options = EXTRAS[name]
        # The clusters' token is not kept in the user's home folder.
        clean = environment(programs(venv), extra={"RAY_AUTH_MODE": "disabled"})
        text = run(programs(venv) / "python", USES / program, *options, cwd=scratch, env=clean)
        print(text.splitlines()[-1])
    left = [name for name in EXTRAS if name not in names]
    if left:
        print(f"SKIPPED: {', '.join(left)} (EXTRAS names what is tried)")
