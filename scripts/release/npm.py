"""The browser client as the npm registry gets it."""

import shutil
from pathlib import Path

from release.checkout import Checkout


def build_npm_package(checkout: Checkout, out: Path) -> None:
    """Write the package; a machine without npm says so and goes on."""
    if shutil.which("npm") is None:
        print("SKIPPED the npm package: there is no npm")
        return
    checkout.run("make", "web", f"REMAP={checkout.flags}")
    checkout.run("npm", "pack", "./web/client", "--pack-destination", str(out))
