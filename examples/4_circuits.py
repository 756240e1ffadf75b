"""4. Circuits: a matrix by diagonals, then a Chebyshev approximation, as in a layer of a network.

Run with: python examples/4_circuits.py
"""

import keywright as kw
import numpy as np
from numpy.polynomial import chebyshev


def main() -> None:
    """Evaluate sigmoid(M x) on an encrypted vector."""
    parameters = kw.Parameters.preset("N14_QP415_S45")
    secret = kw.SecretKey.generate(parameters)
    generator = kw.KeyGenerator(secret)

    n = 32
    rng = np.random.default_rng(4)
    x, matrix = rng.uniform(-1, 1, n), rng.normal(size=(n, n)) / np.sqrt(n)

    # Diagonal r is M[i, (i + r) mod n]. The transform says which rotations it needs: about 2 sqrt(n) of them.
    rows = np.arange(n)
    transform = kw.LinearTransform(
        parameters, {r: matrix[rows, (rows + r) % n] for r in range(n)}, slots=n, level=5
    )
    print(transform)

    keys = kw.EvaluationKeys(parameters)
    for spec in transform.key_specs():
        keys.add(generator.switching_key(spec))
    # The activation begins one level below the transform.
    keys.add(generator.switching_key(kw.KeySpec.relinearization(parameters, level=transform.level - 1)))
    print(keys)

    # Degree 7 on [-4, 4]: three levels, and one for the interval that is not 2 wide.
    sigmoid = chebyshev.Chebyshev.interpolate(lambda t: 1 / (1 + np.exp(-t)), 7, domain=[-4, 4])

    encrypted = kw.Encryptor(generator.public_key()).encrypt(x, slots=n, level=transform.level)
    evaluator = kw.Evaluator(parameters, keys)
    product = evaluator.linear_transform(encrypted, transform)
    # Rows of the matrix are about 1 long, so that no product reaches 4. Bounds that suppose the worst do not
    # know it.
    product = evaluator.declare(product, 4.0)
    activated = evaluator.polynomial(product, sigmoid.coef, basis="chebyshev", interval=(-4, 4))

    result = kw.Decryptor(secret).decrypt(activated)
    print(f"level {encrypted.level} -> {product.level} -> {activated.level}")
    error = np.abs(result - sigmoid(matrix @ x)).max()
    print(f"against the polynomial: largest error {error:.1e}, bound {activated.error_bound:.1e}")
    print(f"against the sigmoid:    {np.abs(result - 1 / (1 + np.exp(-(matrix @ x)))).max():.1e}")
    if error > activated.error_bound:
        raise AssertionError("the error is above its bound")


if __name__ == "__main__":
    main()
