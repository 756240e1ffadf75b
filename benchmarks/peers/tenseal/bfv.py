"""BFV of SEAL from the TenSEAL wheel, through its `sealapi`."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

import tenseal.sealapi as seal

from peers.bfv import LOG_N, VALUES, WIDTHS, T, measure
from peers.tenseal.__main__ import LEFT_BY_ONE


def main() -> None:
    """Measure every work."""
    literal = seal.EncryptionParameters(seal.SCHEME_TYPE.BFV)
    literal.set_poly_modulus_degree(1 << LOG_N)
    literal.set_coeff_modulus(seal.CoeffModulus.Create(1 << LOG_N, list(WIDTHS)))
    literal.set_plain_modulus(T)
    context = seal.SEALContext(literal, True, seal.SEC_LEVEL_TYPE.TC128)
    keys = seal.KeyGenerator(context)
    public, relinearization, galois = seal.PublicKey(), seal.RelinKeys(), seal.GaloisKeys()
    keys.create_public_key(public)
    keys.create_relin_keys(relinearization)
    keys.create_galois_keys([LEFT_BY_ONE], galois)
    encryptor = seal.Encryptor(context, public, keys.secret_key())
    decryptor = seal.Decryptor(context, keys.secret_key())
    evaluator, encoder = seal.Evaluator(context), seal.BatchEncoder(context)
    sent = VALUES.tolist()

    def encode() -> Any:
        plaintext = seal.Plaintext()
        encoder.encode(sent, plaintext)
        return plaintext

    def encrypt(plaintext: Any) -> Any:
        ciphertext = seal.Ciphertext()
        encryptor.encrypt(plaintext, ciphertext)
        return ciphertext

    def encrypt_secret() -> Any:
        ciphertext = seal.Ciphertext()
        encryptor.encrypt_symmetric(encode(), ciphertext)
        return ciphertext

    def decrypt(ciphertext: Any) -> Any:
        plaintext = seal.Plaintext()
        decryptor.decrypt(ciphertext, plaintext)
        return encoder.decode_uint64(plaintext)

    def operate(name: str, *operands: Any) -> Any:
        out = seal.Ciphertext()
        getattr(evaluator, name)(*operands, out)
        return out

    def multiply() -> Any:
        product = operate("multiply", x, y)
        evaluator.relinearize_inplace(product, relinearization)
        return product

    x, y = encrypt(encode()), encrypt(encode())
    works = {
        "encrypt": lambda: encrypt(encode()),
        "encrypt_secret": encrypt_secret,
        "encrypt_scalar": lambda: encrypt(seal.Plaintext("3")),
        "decrypt": lambda: decrypt(x),
        "add": lambda: operate("add", x, y),
        "add_plain": lambda: operate("add_plain", x, encode()),
        "multiply_plain": lambda: operate("multiply_plain", x, encode()),
        "multiply_relin": multiply,
        "rotate": lambda: operate("rotate_rows", x, 1, galois),
    }
    measure(
        "tenseal", version("tenseal"), works, lambda r: decrypt(r) if isinstance(r, seal.Ciphertext) else r
    )


if __name__ == "__main__":
    main()
