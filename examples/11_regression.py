"""11. Ridge regression and principal components of encrypted data.

Run with: python examples/11_regression.py
"""

from itertools import combinations_with_replacement

import keywright as kw
import numpy as np
from sklearn.datasets import load_diabetes

FEATURES = ["bmi", "bp", "s5"]
PENALTY = 0.1
SQUARINGS = 5

Matrix = dict[tuple[int, int], kw.Encrypted]
PAIRS = list(combinations_with_replacement(range(len(FEATURES)), 2))


def product(left: Matrix, right: Matrix) -> Matrix:
    """Multiply two symmetric matrices that commute; the entries below the diagonal are those above it. No
    entry exceeds the largest eigenvalue, which is at most 1."""
    count = range(len(FEATURES))
    return {
        (i, j): sum(
            (left[min(i, k), max(i, k)] * right[min(k, j), max(k, j)] for k in count[1:]),
            start=left[0, i] * right[0, j],
        ).within(-1, 1)
        for i, j in PAIRS
    }


def applied(matrix: Matrix, vector: list[kw.Encrypted]) -> list[kw.Encrypted]:
    """Multiply a symmetric matrix by a vector that stays at most as long as a solution."""
    count = range(len(FEATURES))
    return [
        sum(
            (matrix[min(i, k), max(i, k)] * vector[k] for k in count[1:]), start=matrix[0, i] * vector[0]
        ).within(-1 / PENALTY, 1 / PENALTY)
        for i in count
    ]


def main() -> None:
    """Fit both models on encrypted patients, and compare them with those in the clear."""
    data = load_diabetes(scaled=False)
    columns = [data.feature_names.index(name) for name in FEATURES]
    table, target = data.data[:, columns], data.target

    # The client standardises its data, with a trace of 1 for the matrix of products, and encrypts each
    # column.
    rows, slots = len(table), 512
    scaled = (table - table.mean(axis=0)) / table.std(axis=0) / np.sqrt(rows * len(FEATURES))
    centred = (target - target.mean()) / target.std() / np.sqrt(rows * len(FEATURES))
    parameters = kw.Parameters.preset("N14_QP430_S40")
    secret = kw.SecretKey.generate(parameters)
    generator = kw.KeyGenerator(secret)
    keys = generator.evaluation_keys(rotations=[2**step for step in range(9)])
    encryptor, decryptor = kw.Encryptor(generator.public_key()), kw.Decryptor(secret)
    evaluator = kw.Evaluator(parameters, keys)
    padded = np.pad(np.column_stack([scaled, centred]), ((0, slots - rows), (0, 0)))
    *features, results = (
        evaluator(encryptor.encrypt(column, slots=slots, magnitude=0.25)) for column in padded.T
    )

    # The server: products of columns, then (G + penalty)^-1 b as a product of 1 + B^(2^k), with B = 1 - G -
    # penalty.
    gram: Matrix = {(i, j): (features[i] @ features[j]).within(-1, 1) for i, j in PAIRS}
    power: Matrix = {(i, j): -gram[i, j] + ((1 - PENALTY) if i == j else 0.0) for i, j in PAIRS}
    weights = [(column @ results).within(-1, 1) for column in features]
    for step in range(SQUARINGS + 1):
        weights = [old + new for old, new in zip(weights, applied(power, weights), strict=True)]
        if step < SQUARINGS:
            power = product(power, power)
    squared = gram
    for _ in range(4):
        squared = product(squared, squared)

    # The client decrypts three weights, and a column of G^16, which has the direction of the first component.
    ridge = np.array([decryptor.decrypt(weight)[0].real for weight in weights])
    column = np.array([decryptor.decrypt(squared[0, j])[0].real for j in range(len(FEATURES))])
    component = column / np.linalg.norm(column)

    exact_gram = scaled.T @ scaled
    exact = np.linalg.solve(exact_gram + PENALTY * np.eye(len(FEATURES)), scaled.T @ centred)
    _, vectors = np.linalg.eigh(exact_gram)
    first = vectors[:, -1] * np.sign(vectors[:, -1] @ component)
    for name, own, other in zip(FEATURES, ridge, exact, strict=True):
        print(f"weight of {name:4} {own:+.5f}, exactly {other:+.5f}")
    print(f"first component {np.round(component, 5)}, exactly {np.round(first, 5)}")
    # Bounds of errors suppose the worst in each of some 200 products, and say nothing here. 64 terms of the
    # series and 16 steps of the power method are exact to six digits; three are required.
    if max(np.abs(ridge - exact).max(), np.abs(component - first).max()) > 1e-3:
        raise AssertionError("a weight or a component is wrong")


if __name__ == "__main__":
    main()
