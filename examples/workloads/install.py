"""Put a submission into a checkout of a community workload: ml-inference or fetch-by-similarity.

    rm -r CHECKOUT/submission CHECKOUT/scripts
    python examples/workloads/install.py ml-inference CHECKOUT

The harness then builds and runs it with the Python that ran this script.
"""

import argparse
import shutil
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
MODEL = HERE.parent / "models" / "lenet_mnist.onnx"
NETWORK = "ml-inference"
WORKLOADS = (NETWORK, "fetch-by-similarity")


def install(workload: str, checkout: Path, model: Path) -> None:
    """Copy scripts, programs and, for ml-inference, the model.

    Raises:
        SystemExit: the folder is not a checkout, or already has a submission.
    """
    if not (checkout / "harness").is_dir():
        raise SystemExit(f"{checkout} has no folder harness; name a clone of fhe-benchmarking/{workload}")
    folders = {"scripts": HERE / "scripts", "submission": HERE / workload / "submission"}
    for name in folders:
        if (checkout / name).exists():
            raise SystemExit(f"{checkout / name} exists; remove it first")
    for name, source in folders.items():
        shutil.copytree(source, checkout / name, ignore=shutil.ignore_patterns("__pycache__"))
    submission = checkout / "submission"
    shutil.copyfile(HERE / "programs.py", submission / "programs.py")
    if workload == NETWORK:
        shutil.copyfile(model, submission / "model.onnx")
    (submission / "python").write_text(f"{sys.executable}\n")


def main() -> None:
    """Read the command line and install."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("workload", choices=WORKLOADS)
    parser.add_argument("checkout", type=Path, help="clone of the workload")
    parser.add_argument(
        "--model",
        type=Path,
        default=MODEL,
        help="ONNX network of 784 pixels in [0, 1] for ml-inference (default: the LeNet)",
    )
    arguments = parser.parse_args()
    install(arguments.workload, arguments.checkout, arguments.model)


if __name__ == "__main__":
    main()
