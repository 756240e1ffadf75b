"""ConvFHE's network 3-20-1 for other classes: `python -m studies.coefficient_network.last_layer --weights W
--images I --out F`.

I has a folder of training images for each class, such as those of CIFAR-100. All layers are those of W but
the last one, which is fitted to the classes by logistic regression. F has the files that
`studies.coefficient_network` reads. Needs scikit-learn and pillow.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression

from studies.coefficient_network.network import (
    SETTINGS,
    clear_run,
    cropped,
    read_images,
    read_network,
    write_network,
)

ITERATIONS = 300


def main() -> int:
    """Fit the layer, and write all."""
    parser = argparse.ArgumentParser(
        prog="python -m studies.coefficient_network.last_layer", description=__doc__
    )
    parser.add_argument("--weights", type=Path, required=True, help="the folder of the weights")
    parser.add_argument("--images", type=Path, required=True, help="folders of training images")
    parser.add_argument("--count", type=int, default=10_000, help="training images (default: 10000)")
    parser.add_argument("--out", type=Path, required=True, help="folder of the new weights")
    options = parser.parse_args()
    network = read_network(SETTINGS["3-20-1"], options.weights)
    size = len(network.matrix)
    # The means of the last convolution's channels, as scores.
    body = replace(network, matrix=np.eye(size), bias=np.zeros(size))
    images, labels, mean = read_images(options.images, options.count)
    features, _ = clear_run(cropped(images - mean, network.layers[0].kernel), body)
    fitted = LogisticRegression(max_iter=ITERATIONS).fit(features, labels)
    shutil.copytree(options.weights, options.out)
    write_network(options.out, {"final-fckernel": fitted.coef_.T, "final-fcbias": fitted.intercept_})
    return 0


if __name__ == "__main__":
    sys.exit(main())
