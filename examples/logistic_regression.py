"""Train a logistic regression on encrypted images: MNIST's 3 against 8, as in section 6.1 of Aikata et al.

    python examples/logistic_regression.py --mnist FOLDER [--steps 16] [--blocks 8]
    python examples/logistic_regression.py --mnist FOLDER --all
    python examples/logistic_regression.py --toy

FOLDER holds the four idx.gz files of MNIST. The client sends coefficients modulo one prime; the server raises
the modulus (the small bootstrapping), trains, bootstraps the weights when their levels are spent, and sends
them back as coefficients modulo one prime. Some 5.4 GB. `--all` sends all training samples and takes a step
with each batch: minutes. `--toy` uses synthetic data and a ring without security: seconds. Exits with 1
unless the trained model predicts every test image like a model trained in the clear by the same steps on the
same data.

The steps are those of Han, Hong, Cheon and Park (AAAI 2019): Nesterov's accelerated gradient, mini-batches, a
sigmoid of degree 3. With z_i = y_i (1, x_i), labels y_i of 1 and -1, u_i = <z_i, w>, a batch of m samples and

    s(-u) = 1/2 - a u + b u^3          within 0.04 of the sigmoid of -u for |u| < 8

a step is  v' = w + (g/m) sum_i s(-u_i) z_i,   w' = (1 + h) v' - h v.

One ciphertext has a batch: feature j of sample i in slot j m + i, a row for each feature, and slots end where
the rows do. The weights are in all slots of their rows.

    level  l      w, v, z
           l - 1  u = rotate-and-sum of z w over the rows: cyclic, so that every row has all u_i
           l - 2  u^2,  t = u z
           l - 3  p = t (u^2 - a/b) + z / 2b, in which s(-u) z = b p;  rotate-and-sum along a row
           l - 4  times (g b / m, and 0 but in the first slot of a row), rotated to all slots; v', w'
"""

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import keywright as kw
import numpy as np
from numpy.typing import NDArray
from train_mnist import read_idx

Array = NDArray[np.float64]

PRESET = "N16_QP1732_L9_S45_real"
CLASSES = (3, 8)
SIGMOID = (0.15012, 0.001593)
"""a and b: least squares on [-8, 8] (Kim, Song, Wang, Xia and Jiang, 2018)."""

MOMENTUM = 0.5
RATES = (1.0, 0.3)
"""g by default, and for a step with each batch of all samples: larger ones leave the range of the sigmoid."""
BOUND = 4
"""The weights are bootstrapped as multiples of it, so they must stay below."""

STEP_LEVELS = 4
FRACTION_BITS = 26
"""Fraction bits of the numbers that the client sends and reads: more than bootstrapping preserves."""

PAPER_SAMPLES, PAPER_MB = 11_982, (845, 76)
"""The paper's samples, and its megabytes before and with boosted deflation."""


@dataclass(frozen=True)
class Data:
    """Rows z_i of the training samples, and features with labels of the test samples."""

    rows: Array
    test: Array
    labels: NDArray[np.int64]


def mnist(folder: Path) -> Data:
    """Images of two digits at 14 x 14, each pixel the mean of four, after a one; rows in random order."""
    halves = []
    for split in ("train", "t10k"):
        images = read_idx(folder / f"{split}-images-idx3-ubyte.gz")
        digits = read_idx(folder / f"{split}-labels-idx1-ubyte.gz")
        chosen = np.isin(digits, CLASSES)
        pixels = images[chosen].reshape(-1, 14, 2, 14, 2).mean((2, 4)).reshape(-1, 196) / 255
        labels = np.where(digits[chosen] == CLASSES[0], 1, -1)
        halves.append((np.column_stack([np.ones(len(pixels)), pixels]), labels))
    (features, labels), (test, test_labels) = halves
    order = np.random.default_rng(0).permutation(len(features))
    return Data((features * labels[:, None])[order], test, test_labels)


def toy_data(count: int, features: int) -> Data:
    """Return two noisy clouds, with a one before each point."""
    rng = np.random.default_rng(1)
    centre = rng.uniform(-0.15, 0.15, features - 1)
    labels = rng.choice([-1, 1], 2 * count)
    points = np.clip(labels[:, None] * centre + rng.normal(0, 0.4, (2 * count, features - 1)), -1, 1)
    rows = np.column_stack([np.ones(2 * count), points])
    return Data((rows * labels[:, None])[:count], rows[count:], labels[count:])


def train_clear(batches: Sequence[Array], steps: int, rate: float) -> Array:
    """Return the weights after ``steps`` steps, in double precision.

    Raises:
        ValueError: a weight left the range that can be bootstrapped.
    """
    a, b = SIGMOID
    v = w = np.zeros(batches[0].shape[1])
    for step in range(steps):
        rows = batches[step % len(batches)]
        u = rows @ w
        ascended = w + rate / len(rows) * ((0.5 - a * u + b * u**3) @ rows)
        v, w = ascended, (1 + MOMENTUM) * ascended - MOMENTUM * v
        if max(np.abs(v).max(), np.abs(w).max()) >= BOUND:
            raise ValueError(f"step {step + 1}: a weight is {np.abs(w).max():.2f}; it must be below {BOUND}")
    return w


class Packing:
    """The positions of a batch and of the weights in the slots, which a thin client fills in order."""

    def __init__(self, plan: kw.BootstrapperPlan, features: int) -> None:
        self.features = 1 << (features - 1).bit_length()
        self.samples = plan.slots // self.features

    def batches(self, rows: Array, count: int) -> list[Array]:
        """Return the first `count` batches of rows; rows of zeros, which have no effect, fill up the last
        one."""
        if (most := -(-len(rows) // self.samples)) < count:
            raise ValueError(f"{len(rows)} samples fill {most} batches of {self.samples}, not {count}")
        whole = np.zeros((count * self.samples, rows.shape[1]))
        taken = rows[: len(whole)]
        whole[: len(taken)] = taken
        return list(whole.reshape(count, self.samples, -1))

    def pack(self, batch: Array) -> NDArray[np.int64]:
        """Return the numbers that a client sends for a batch of rows z_i."""
        grid = np.zeros((self.features, self.samples))
        grid[: batch.shape[1]] = batch.T
        numbers: NDArray[np.int64] = np.rint(grid.reshape(-1) * 2**FRACTION_BITS).astype(np.int64)
        return numbers

    def unpack(self, numbers: NDArray[np.int64], features: int) -> Array:
        """Return the weights in the numbers of an answer."""
        first: Array = numbers.reshape(self.features, self.samples)[:features, 0] / 2**FRACTION_BITS
        return BOUND * first


class Trainer:
    """The server: it has evaluation keys and ciphertexts.

    Args:
        plan: of the bootstrapping.
        packing: of batches.
        keys: those of `specs`.
        rate: g.
    """

    def __init__(
        self, plan: kw.BootstrapperPlan, packing: Packing, keys: kw.EvaluationKeys, rate: float
    ) -> None:
        self._plan, self._packing = plan, packing
        self._clients = plan.client_parameters(FRACTION_BITS)
        self._evaluator = kw.Evaluator(plan.parameters, keys)
        self._bootstrapper = kw.Bootstrapper(plan)
        mask = np.zeros((packing.features, packing.samples))
        mask[:, 0] = rate * SIGMOID[1] / packing.samples / BOUND
        self._mask = mask.reshape(-1)
        self.bootstraps = 0

    @staticmethod
    def specs(plan: kw.BootstrapperPlan, packing: Packing) -> list[kw.KeySpec]:
        """Return the keys of a training, each at the level where it is used first."""
        parameters, top = plan.parameters, plan.output_level
        rows = [packing.samples << k for k in range(packing.features.bit_length() - 1)]
        along = [1 << k for k in range(packing.samples.bit_length() - 1)]
        expected = [(step, top - 1) for step in rows]
        expected += [(step, top - 3) for step in along] + [(-step, top - 4) for step in along]
        rotations = [kw.KeySpec.rotation(parameters, step, level) for step, level in expected]
        product = kw.KeySpec.relinearization(parameters, top)
        return list(dict.fromkeys([*plan.required_keys, product, *rotations]))

    def receive(self, upload: bytes) -> kw.Ciphertext:
        """Return a batch in slots, from a thin client's message."""
        sent = self._clients.read_upload(upload, self._plan.parameters)
        return self._bootstrapper.bootstrap_coefficients(self._evaluator, sent)

    def train(self, batches: Sequence[kw.Ciphertext], steps: int) -> bytes:
        """Return the weights after ``steps`` steps, as coefficients modulo one prime."""
        e, lowest = self._evaluator, self._plan.input_level
        halves = [e.multiply(z, 0.5 / SIGMOID[1]) for z in batches]
        v = w = e.multiply(batches[0], 0)
        for step in range(steps):
            if w.level - STEP_LEVELS < lowest:
                w, v = self._refresh(w), self._refresh(v)
            v, w = self._step(batches[step % len(batches)], halves[step % len(batches)], v, w)
        # Not write_answer: it refuses values that might not fit, and the bound of a ciphertext assumes the
        # worst case of every sum of 256 features.
        return e.drop_to_level(self._bootstrapper.slots_to_coeffs(e, w), 0).to_bytes()

    def _refresh(self, state: kw.Ciphertext) -> kw.Ciphertext:
        self.bootstraps += 1
        # The bound assumes the worst case of every sum; weights are divided by a bound that they keep to.
        return self._bootstrapper.bootstrap(self._evaluator, self._evaluator.declare(state, 1.0))

    def _step(
        self, z: kw.Ciphertext, half: kw.Ciphertext, v: kw.Ciphertext, w: kw.Ciphertext
    ) -> tuple[kw.Ciphertext, kw.Ciphertext]:
        e, packing, (a, b) = self._evaluator, self._packing, SIGMOID
        u = e.inner_sum(e.multiply(z, e.multiply(w, BOUND)), packing.samples, packing.features)
        product = e(e.multiply(u, z)) * (e(e.square(u)) - a / b)
        along = e.inner_sum((product + e(half)).ciphertext, 1, packing.samples)

        def spread(factor: float) -> kw.values.Encrypted:
            first = e.multiply(along, factor * self._mask)
            return e(e.inner_sum(first, -1, packing.samples))

        ahead = spread(1 + MOMENTUM) + e(w) * (1 + MOMENTUM) - e(v) * MOMENTUM
        return (spread(1) + e(w)).ciphertext, ahead.ciphertext


@contextmanager
def timed(what: str) -> Iterator[None]:
    """Print how long the block took."""
    start = time.perf_counter()
    yield
    print(f"{what}: {time.perf_counter() - start:.2f} s", flush=True)


def toy_plan() -> kw.BootstrapperPlan:
    """Return a plan with two steps between bootstraps, in a ring without security."""
    bits = [50, 40, 40, *[45] * 9, *[50] * 13]
    parameters = kw.Parameters.from_bits(11, bits, [50, 50, 50], 45, insecure=True)
    return kw.BootstrapperPlan(
        parameters,
        slots_to_coeffs=2,
        coeffs_to_slots=2,
        values="real",
        log_ratio=5,
        cosine_degree=30,
        double_angles=3,
        arcsine_degree=5,
        log2_failure=-40,
    )


def main() -> int:
    """Train encrypted and in the clear; the exit code says whether the models agree."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--mnist", type=Path, help="folder of MNIST's idx.gz files")
    parser.add_argument("--toy", action="store_true", help="made data, a small ring")
    parser.add_argument("--steps", type=int, default=16)
    parser.add_argument("--blocks", type=int, default=8, help="batches that the client sends")
    parser.add_argument("--all", action="store_true", help="all samples, and a step with each batch")
    arguments = parser.parse_args()
    if arguments.toy == (arguments.mnist is not None):
        parser.error("name --mnist FOLDER, or --toy")
    if arguments.steps < 1 or arguments.blocks < 1:
        parser.error("--steps and --blocks are at least 1")
    plan = toy_plan() if arguments.toy else kw.BootstrapperPlan.preset(PRESET)
    parameters = plan.parameters
    try:
        data = toy_data(250, 20) if arguments.toy else mnist(arguments.mnist)
        features = data.rows.shape[1]
        packing = Packing(plan, features)
        if arguments.all:
            arguments.blocks = arguments.steps = -(-len(data.rows) // packing.samples)
        batches = packing.batches(data.rows, arguments.blocks)
    except (OSError, ValueError) as error:
        parser.error(str(error))
    rate = RATES[arguments.all]
    sent = min(len(data.rows), arguments.blocks * packing.samples)
    print(
        f"{parameters!r}: batches of {packing.samples} samples, {arguments.blocks} sent with {sent} samples, "
        f"{features} features"
    )

    client = kw.thin.Client(plan.client_parameters(FRACTION_BITS))
    specs = Trainer.specs(plan, packing)
    with timed(f"{len(specs)} keys, {sum(spec.bytes for spec in specs) / 1e6:.0f} MB"):
        secret = kw.SecretKey.from_bytes(client.secret_bytes(), parameters)
        keys = kw.KeyGenerator(secret).evaluation_keys(relinearization=False, specs=specs)
        del secret
    packed = [packing.pack(batch) for batch in batches]
    start = time.perf_counter()
    uploads = [client.encrypt(numbers, dropped=0) for numbers in packed]
    each = 1e3 * (time.perf_counter() - start) / len(uploads)
    size = sum(map(len, uploads))
    print(f"{len(uploads)} ciphertexts, {size} bytes in all, encrypted in {each:.2f} ms each")

    with timed("matrices"):
        server = Trainer(plan, packing, keys, rate)
    with timed("raising the modulus of the uploads"):
        received = [server.receive(upload) for upload in uploads]
    with timed(f"{arguments.steps} steps"):
        answer = server.train(received, arguments.steps)
    weights = packing.unpack(client.decrypt(answer), features)
    clear = train_clear(batches, arguments.steps, rate)

    scores = {"encrypted": data.test @ weights, "in the clear": data.test @ clear}
    for name, score in scores.items():
        right = int((np.sign(score) == data.labels).sum())
        print(f"trained {name}: {right} of {len(data.labels)} test samples, {right / len(data.labels):.2%}")
    differ = int(np.not_equal(*(np.sign(score) for score in scores.values())).sum())
    print(f"{server.bootstraps} bootstraps of weights, answer of {len(answer)} bytes")
    print(f"largest difference of a weight {np.abs(weights - clear).max():.2e}, {differ} predictions differ")
    if arguments.all and not arguments.toy:
        print(f"paper: {PAPER_SAMPLES} samples, {PAPER_MB[0]} MB, with boosted deflation {PAPER_MB[1]} MB")
    return int(differ > 0)


if __name__ == "__main__":
    sys.exit(main())
