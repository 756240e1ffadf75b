"""How many values of MNIST's test set are not zero (Chem's table 1), and the additions for their digits.

Nothing is encrypted. `python -m studies.cached_encryption.nonzero --mnist FOLDER` prints a table.
"""

import argparse
from pathlib import Path

from harness.table import markdown

from studies.cached_encryption.radix import additions
from studies.cached_encryption.tensors import mnist


def counted(folder: Path, images: int) -> list[str]:
    """A row: images, the share of their values that is not zero, mean additions with radix 2 and 3."""
    tensors = mnist(folder, images)
    means = (f"{additions(tensors.samples, radix):.3f}" for radix in (2, 3))
    return [f"{images:,}", f"{100 * tensors.nonzero:.2f} %", *means]


def main() -> None:
    """Count, print."""
    parser = argparse.ArgumentParser(prog="python -m studies.cached_encryption.nonzero", description=__doc__)
    parser.add_argument("--mnist", type=Path, required=True, help="folder of MNIST's files")
    folder = parser.parse_args().mnist
    rows = [counted(folder, images) for images in (1000, 10000)]
    print("\n".join(markdown(["test images", "not zero", "additions, radix 2", "radix 3"], rows)))


if __name__ == "__main__":
    main()
