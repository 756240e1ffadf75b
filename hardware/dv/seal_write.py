"""Write `seal_switch.txt`: what SEAL's `relinearize` makes of the inputs of seal_switch.py.

Needs TenSEAL (`pip install tenseal==0.3.18`), whose `sealapi` is SEAL 4 itself. Not needed to use the file.
Words go to SEAL in its own files, uncompressed: they are any residues, of no ciphertext or key.
"""

import struct
import sys
import tempfile
from array import array
from pathlib import Path

HERE = Path(__file__).parent
sys.path += [str(HERE), str(HERE.parent / "generate"), str(HERE.parents[1] / "vectors")]

import tenseal.sealapi as seal  # noqa: E402
from key_switch_package import primes  # noqa: E402
from key_switching import Polynomial  # noqa: E402
from pipe_twiddles import reversed_bits, root  # noqa: E402
from seal_switch import LOG_NS, SHAPE, TEXT, inputs, text  # noqa: E402

HEADER = 16


def order(q: int, log_n: int) -> list[int]:
    """Where SEAL's words of evaluations are among the software's: SEAL's root is the least one."""
    psi, n = root(q, log_n), 1 << log_n
    exponent, power, least = 1, psi, psi
    for e in range(1, 2 * n, 2):
        if power < least:
            exponent, least = e, power
        power = power * psi * psi % q
    return [
        reversed_bits(exponent * (2 * reversed_bits(i, log_n) + 1) % (2 * n) // 2, log_n) for i in range(n)
    ]


class Session:
    """SEAL's context of the hardware's primes, its files and one relinearization."""

    def __init__(self, log_n: int, folder: Path) -> None:
        parameters = seal.EncryptionParameters(seal.SCHEME_TYPE.CKKS)
        parameters.set_poly_modulus_degree(1 << log_n)
        parameters.set_coeff_modulus([seal.Modulus(prime.value) for prime in primes(SHAPE)])
        self.n, self.file = 1 << log_n, folder / "seal"
        self.orders = [order(prime.value, log_n) for prime in primes(SHAPE)]
        self.context = seal.SEALContext(parameters, True, seal.SEC_LEVEL_TYPE.NONE)
        generator = seal.KeyGenerator(self.context)
        secret = generator.secret_key()
        secret.save(str(self.file))
        self.version = self.file.read_bytes()[3:5]

    def _object(self, members: bytes) -> bytes:
        """An object of SEAL's: its header, uncompressed, and its members."""
        head = struct.pack("<HB2sBHQ", 0xA15E, HEADER, self.version, 0, 0, HEADER + len(members))
        return head + members

    def _ciphertext(self, parameters: list[int], halves: list[list[Polynomial]]) -> bytes:
        """Polynomials `[part][prime]` as a ciphertext of evaluations at scale 1."""
        words = array("Q", [half[j][i] for half in halves for j in range(len(half)) for i in self.orders[j]])
        shape = struct.pack("<4Q?3QdQ", *parameters, True, len(halves), self.n, len(halves[0]), 1.0, 1)
        return self._object(shape + self._object(struct.pack("<Q", len(words)) + words.tobytes()))

    def relinearize(
        self, digits: list[Polynomial], key: list[list[list[Polynomial]]], addend: list[list[Polynomial]]
    ) -> list[list[Polynomial]]:
        """The halves that SEAL makes of `(addend, digits)`."""
        of_keys, of_data = (
            list(data.parms_id())
            for data in (self.context.key_context_data(), self.context.first_context_data())
        )
        keys = [self._ciphertext(of_keys, [key[0][d], key[1][d]]) for d in range(len(digits))]
        members = struct.pack("<4Q2Q", *of_keys, 1, len(keys)) + b"".join(keys)
        self.file.write_bytes(self._object(members))
        relinearization = seal.RelinKeys()
        relinearization.load(self.context, str(self.file))
        self.file.write_bytes(self._ciphertext(of_data, [*addend, digits]))
        ciphertext = seal.Ciphertext()
        ciphertext.load(self.context, str(self.file))
        seal.Evaluator(self.context).relinearize_inplace(ciphertext, relinearization)
        assert ciphertext.size() == len(addend)
        result = [[[0] * self.n for _ in digits] for _ in addend]
        for k, half in enumerate(result):
            for j, words in enumerate(half):
                for i, at in enumerate(self.orders[j]):
                    words[at] = ciphertext[self.n * (len(digits) * k + j) + i]
        return result


def main() -> None:
    """Writes the file."""
    results = {}
    for log_n in LOG_NS:
        with tempfile.TemporaryDirectory() as folder:
            results[log_n] = Session(log_n, Path(folder)).relinearize(*inputs(log_n))
    TEXT.write_text(text(results), encoding="ascii")


if __name__ == "__main__":
    main()
