"""6. Client and server: files, messages, and the secret key that the server never has.

Run with: python examples/6_files.py
"""

import tempfile
from pathlib import Path

import keywright as kw
import numpy as np


def client_prepares(folder: Path, values: np.ndarray) -> None:
    """Write the secret for the client; parameters, keys and ciphertext for the server."""
    parameters = kw.Parameters.preset("N13_QP214_S38")
    secret = kw.SecretKey.generate(parameters)
    secret.save(folder / "client" / "secret.kw")
    parameters.save(folder / "client" / "parameters.kw")

    parameters.save(folder / "server" / "parameters.kw")
    # Each key is written as soon as it is made: a set need not fit in memory.
    specs = [kw.KeySpec.relinearization(parameters, level=3)]
    specs += [kw.KeySpec.rotation(parameters, 1 << k, level=2) for k in range(6)]
    kw.KeyGenerator(secret).save_evaluation_keys(folder / "server" / "keys.kw", specs)
    # Encrypted with the secret: one half is a 32-byte seed.
    kw.Decryptor(secret).encrypt(values, slots=64).save(folder / "server" / "input.kw")


def server_computes(folder: Path) -> None:
    """Return the mean square of 64 encrypted values, from files without a secret key."""
    parameters = kw.Parameters.load(folder / "parameters.kw")
    evaluator = kw.Evaluator(parameters, kw.EvaluationKeys.load(folder / "keys.kw", parameters))
    x = kw.SeededCiphertext.load(folder / "input.kw", parameters).expand()
    mean = evaluator.multiply(evaluator.inner_sum(evaluator.square(x)), 1 / 64)
    mean.save(folder / "answer.kw")


def client_reads(folder: Path) -> float:
    """Decrypt the answer."""
    parameters = kw.Parameters.load(folder / "client" / "parameters.kw")
    decryptor = kw.Decryptor(kw.SecretKey.load(folder / "client" / "secret.kw", parameters))
    return float(decryptor.decrypt(kw.Ciphertext.load(folder / "server" / "answer.kw", parameters))[0])


def main() -> None:
    """Play both parts in a temporary folder."""
    values = np.random.default_rng(6).normal(size=64)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "client").mkdir()
        (folder / "server").mkdir()
        client_prepares(folder, values)
        server_computes(folder / "server")
        answer = client_reads(folder)
        for path in sorted(folder.glob("*/*.kw")):
            about = kw.keys.inspect(path)
            kept = "  stays with its owner" if about["secret"] else ""
            print(f"{path.relative_to(folder)!s:22} {about['bytes']:9,} bytes  {about['kind']}{kept}")
        # A damaged file is refused, wherever the damage is.
        damaged = bytearray((folder / "server" / "answer.kw").read_bytes())
        damaged[len(damaged) // 2] ^= 1
        try:
            kw.Ciphertext.from_bytes(bytes(damaged), kw.Parameters.load(folder / "server" / "parameters.kw"))
        except kw.errors.FormatError as error:
            print(f"refused: {error}")
    print(f"mean square {answer:.6f}, in clear {np.mean(values**2):.6f}")
    if abs(answer - np.mean(values**2)) > 1e-4:
        raise AssertionError("the answer is wrong")


if __name__ == "__main__":
    main()
