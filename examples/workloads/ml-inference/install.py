"""Put the submission into a checkout of fhe-benchmarking/ml-inference.

    rm -r CHECKOUT/submission CHECKOUT/scripts
    python examples/workloads/ml-inference/install.py CHECKOUT

The harness then builds and runs it with the Python that ran this script.
"""

import argparse
import shutil
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
MODEL = HERE.parent.parent / "models" / "lenet_mnist.onnx"
FOLDERS = ("scripts", "submission")


def install(checkout: Path, model: Path) -> None:
    """Copy scripts, programs and the model.

    Raises:
        SystemExit: the folder is not a checkout, or already has a submission.
    """
    if not (checkout / "harness").is_dir():
        raise SystemExit(f"{checkout} has no folder harness; name a clone of fhe-benchmarking/ml-inference")
    for name in FOLDERS:
        if (checkout / name).exists():
            raise SystemExit(f"{checkout / name} exists; remove it first")
    for name in FOLDERS:
        shutil.copytree(HERE / name, checkout / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copyfile(model, checkout / "submission" / "model.onnx")
    (checkout / "submission" / "python").write_text(f"{sys.executable}\n")


def main() -> None:
    """Read the command line and install."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("checkout", type=Path, help="clone of fhe-benchmarking/ml-inference")
    parser.add_argument(
        "--model", type=Path, default=MODEL, help="ONNX network of 784 pixels in [0, 1] (default: the LeNet)"
    )
    arguments = parser.parse_args()
    install(arguments.checkout, arguments.model)


if __name__ == "__main__":
    main()
