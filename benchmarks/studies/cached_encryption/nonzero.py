"""How many values of MNIST's test set and of a recording are not zero (Chem's table 1), and the additions for
their digits.

Nothing is encrypted. `python -m studies.cached_encryption.nonzero --mnist FOLDER --recording FILE` prints a
table; FILE is the source distribution of pysptk 1.0.1, which has a recording of CMU ARCTIC.
"""

import argparse
from pathlib import Path

from harness.pages.table import heading, markdown

from studies.cached_encryption.radix import additions
from studies.cached_encryption.tensors import Tensors, mnist, recording


def counted(name: str, tensors: Tensors) -> list[str]:
    """A row: what it is, how many values, the share that is not zero, mean additions with radix 2 and 3."""
    means = (f"{additions(tensors.samples, radix):.3f}" for radix in (2, 3))
    return [name, f"{tensors.samples.size:,}", f"{100 * tensors.nonzero:.2f} %", *means]


def main() -> None:
    """Count, print."""
    parser = argparse.ArgumentParser(prog="python -m studies.cached_encryption.nonzero", description=__doc__)
    parser.add_argument("--mnist", type=Path, required=True, help="folder of MNIST's files")
    parser.add_argument("--recording", type=Path, required=True, help="pysptk-1.0.1.tar.gz")
    options = parser.parse_args()
    rows = [counted(f"MNIST, {images:,}", mnist(options.mnist, images)) for images in (1000, 10000)]
    rows.append(counted("CMUARCTIC, one recording", recording(options.recording)))
    head = ["samples", "values", "not zero", "additions, radix 2", "radix 3"]
    print("\n".join([*heading("Values that are not zero", "counted in the clear"), *markdown(head, rows)]))


if __name__ == "__main__":
    main()
