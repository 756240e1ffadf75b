"""Write `bfv.txt`: the programs of `bfv.py`, evaluated by SEAL.

Needs TenSEAL (`pip install tenseal==0.3.18`), whose `sealapi` is SEAL 4 itself. Not needed to use the file.
"""

from pathlib import Path

import tenseal.sealapi as seal
from bfv import CASES, Poly, evaluate, header, inputs, line
from files import finish


def hexadecimal(coefficients: Poly) -> str:
    """A polynomial as SEAL reads it."""
    terms = [f"{c:X}x^{i}" if i else f"{c:X}" for i, c in enumerate(coefficients) if c]
    return " + ".join(reversed(terms)) or "0"


class Session:
    """Parameters of SEAL's default moduli, keys, and a program's inputs."""

    def __init__(self, log_n: int, t: int, packing: str) -> None:
        n = 1 << log_n
        parameters = seal.EncryptionParameters(seal.SCHEME_TYPE.BFV)
        parameters.set_poly_modulus_degree(n)
        level = seal.SEC_LEVEL_TYPE.TC128
        parameters.set_coeff_modulus(seal.CoeffModulus.BFVDefault(n, level))
        parameters.set_plain_modulus(t)
        self.context = seal.SEALContext(parameters, True, level)
        generator = seal.KeyGenerator(self.context)
        public, self.relinearization, self.galois = seal.PublicKey(), seal.RelinKeys(), seal.GaloisKeys()
        generator.create_public_key(public)
        generator.create_relin_keys(self.relinearization)
        self.encryptor = seal.Encryptor(self.context, public)
        self.decryptor = seal.Decryptor(self.context, generator.secret_key())
        self.evaluator = seal.Evaluator(self.context)
        self.encoder = None
        if packing == "slots":
            self.encoder = seal.BatchEncoder(self.context)
            generator.create_galois_keys(self.galois)

    def encode(self, values: Poly) -> seal.Plaintext:
        """A plaintext in the packing."""
        if self.encoder is None:
            return seal.Plaintext(hexadecimal(values))
        plaintext = seal.Plaintext()
        self.encoder.encode(values, plaintext)
        return plaintext

    def encrypt(self, values: Poly) -> seal.Ciphertext:
        """A ciphertext of values."""
        ciphertext = seal.Ciphertext()
        self.encryptor.encrypt(self.encode(values), ciphertext)
        return ciphertext

    def decrypt(self, ciphertext: seal.Ciphertext, n: int) -> Poly:
        """The values."""
        assert self.decryptor.invariant_noise_budget(ciphertext) > 0
        plaintext = seal.Plaintext()
        self.decryptor.decrypt(ciphertext, plaintext)
        if self.encoder is not None:
            return list(self.encoder.decode_uint64(plaintext))
        values = [0] * n
        for term in plaintext.to_string().split(" + "):
            coefficient, _, power = term.partition("x^")
            values[int(power or 0)] = int(coefficient, 16)
        return values

    def operate(self, name: str, *operands: object) -> seal.Ciphertext:
        """One operation of the evaluator that writes to a new ciphertext."""
        out = seal.Ciphertext()
        getattr(self.evaluator, name)(*operands, out)
        return out


def run(case: tuple[int, int, str, int, str]) -> Poly:
    """Residues that a program gives."""
    log_n, t, packing, state, program = case
    session = Session(log_n, t, packing)
    a, b, p = inputs(log_n, t, state)

    def binary(name: str, x: seal.Ciphertext, y: object) -> seal.Ciphertext:
        if isinstance(y, seal.Plaintext):
            return session.operate(f"{name}_plain", x, y)
        product = session.operate(name, x, y)
        if name == "multiply":
            session.evaluator.relinearize_inplace(product, session.relinearization)
        return product

    result = evaluate(
        program,
        {"a": session.encrypt(a), "b": session.encrypt(b), "p": session.encode(p)},
        {
            "+": lambda x, y: binary("add", x, y),
            "-": lambda x, y: binary("sub", x, y),
            "*": lambda x, y: binary("multiply", x, y),
            "~": lambda x: session.operate("negate", x),
            "<": lambda x, k: session.operate("rotate_rows", x, k, session.galois),
            "|": lambda x: session.operate("rotate_columns", x, session.galois),
        },
    )
    return session.decrypt(result, 1 << log_n)


if __name__ == "__main__":
    source = Path(__file__).with_name("bfv.py")
    finish(str(source), "".join(header(case) + line(run(case)) for case in CASES))
