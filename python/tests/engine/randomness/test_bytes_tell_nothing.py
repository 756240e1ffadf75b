"""Nothing outside a ciphertext's polynomials depends on its message.

A registry has a writer for everything that takes a message and leaves its owner. Two tests find what the
registry lacks: every kind of the byte format, and every method of the engine that encrypts.
"""

import re
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keywright as kw
import numpy as np
import pytest
from keywright import _core, search
from keywright.federated import (
    EncryptedSum,
    SumKey,
    SumParameters,
    ThresholdKey,
    ThresholdParameters,
    ThresholdParty,
)
from numpy.typing import NDArray

ENTROPY = bytes(range(32))
KINDS = Path(__file__).parents[4] / "crates" / "frame" / "src" / "kind.rs"
HEADER = struct.Struct("<8sHHBBBB16sIQ")
CHECKSUM_BYTES = 4
SLOTS, COUNT, CHEM_BITS = 16, 5, 8
LARGEST = 8
"""The declared magnitude of every message, and a message that reaches it."""

Message = NDArray[np.int64]
Writer = Callable[[Message], list[Any]]

CKKS = kw.Parameters.preset("N13_QP214_S38")
SECRET = kw.SecretKey.generate(CKKS, ENTROPY)
PUBLIC = kw.KeyGenerator(SECRET, ENTROPY).public_key()
BFV = kw.bfv.Parameters.preset(kw.bfv.Parameters.presets()[0])
BFV_SECRET = kw.SecretKey.generate(BFV, ENTROPY)
BFV_PUBLIC = kw.KeyGenerator(BFV_SECRET, ENTROPY).public_key()
THIN = kw.thin.Parameters(CKKS, scale=1 << 38, fraction_bits=3, slots=2048)
THIN_CLIENT = kw.thin.Client(THIN, ENTROPY)
THIN_PUBLIC = THIN_CLIENT.public_key()
SUMS = SumParameters(4, LARGEST)
SEARCH = search.Quantisation(COUNT, levels=100).parameters
SEARCH_SECRET = kw.SecretKey.generate(SEARCH, ENTROPY)
SEARCHED = _core.SearchIndex(SEARCH, COUNT, 100**2)
SEARCHED.write(np.arange(1), np.ones((1, COUNT), np.int16), np.zeros(0, np.int64))


def encryptor(message: Message) -> list[Any]:
    drawing_encryptor = kw.Encryptor(PUBLIC, ENTROPY)
    return [
        drawing_encryptor.encrypt(message.astype(float), SLOTS, magnitude=LARGEST),
        drawing_encryptor.encrypt(message.astype(complex), SLOTS, magnitude=LARGEST),
        drawing_encryptor.encrypt_coefficients(message.astype(float), magnitude=LARGEST),
        drawing_encryptor.encrypt(message.astype(float)),
    ]


def decryptor(message: Message) -> list[Any]:
    drawing_decryptor = kw.Decryptor(SECRET, ENTROPY)
    return [
        drawing_decryptor.encrypt(message.astype(float), SLOTS, magnitude=LARGEST),
        drawing_decryptor.encrypt_coefficients(message.astype(float), magnitude=LARGEST),
    ]


def pool(key: kw.PublicKey | kw.SecretKey) -> Writer:
    def write(message: Message) -> list[Any]:
        numbers = message.astype(float)
        with kw.EncryptionPool(key, 4, threads=0, entropy=ENTROPY) as ciphertext:
            return [
                ciphertext.encrypt(numbers, SLOTS, LARGEST),
                ciphertext.encrypt(message.astype(complex), SLOTS, LARGEST),
                ciphertext.encrypt_coefficients(numbers, LARGEST),
                ciphertext.encrypt_scalar(numbers[0], SLOTS, LARGEST),
                *ciphertext.encrypt_scalars(numbers, SLOTS, LARGEST),
            ]

    return write


def integer_pool(key: kw.PublicKey | kw.SecretKey) -> Writer:
    def write(message: Message) -> list[Any]:
        with kw.EncryptionPool(key, 4, threads=0, entropy=ENTROPY) as ciphertext:
            return [ciphertext.encrypt_integers(message), ciphertext.encrypt_integers(int(message[0]))]

    return write


def integers(message: Message) -> list[Any]:
    sender, owner = kw.bfv.Encryptor(BFV_PUBLIC, ENTROPY), kw.bfv.Decryptor(BFV_SECRET, ENTROPY)
    return [sender.encrypt(message), owner.encrypt(message)]


def thin(message: Message) -> list[Any]:
    owner = kw.thin.Client.from_secret_bytes(THIN_CLIENT.secret_bytes(), THIN, ENTROPY)
    sender = kw.thin.Encryptor(THIN_PUBLIC, THIN, ENTROPY)
    return [
        owner.encrypt(message),
        owner.encrypt(message, dropped=1),
        sender.encrypt(message),
        sender.encrypt(message, dropped=(1, 0)),
    ]


def update(message: Message) -> list[Any]:
    key = SumKey.generate(SUMS, ENTROPY)
    updates = [key.encrypt(message, session=bytes(16), round=1, client=client, weight=3) for client in (1, 2)]
    return [*updates, EncryptedSum.of(updates, SUMS)]


def searches(message: Message) -> list[Any]:
    """A query and, as only its index determines it, the answer to it."""
    owner, generator = kw.bfv.Decryptor(SEARCH_SECRET, ENTROPY), kw.KeyGenerator(SEARCH_SECRET, ENTROPY)
    elements = _core.SearchIndex.expansion_elements(SEARCH, COUNT)
    specs = [kw.KeySpec.galois(SEARCH, element, SEARCH.max_level, alpha=1) for element in elements]
    values = _core.SearchIndex.query_values(SEARCH, message)
    query = owner.encrypt(values, packing="coefficients")
    return [query, SEARCHED.answer(query, generator.evaluation_keys(relinearization=False, specs=specs))]


def operands(message: Message) -> list[Any]:
    """An encryption of zero to which its owner adds, and which it multiplies by, numbers that are secret."""
    zero = kw.Encryptor(PUBLIC, ENTROPY).encrypt([0.0], SLOTS)
    evaluator, numbers = kw.Evaluator(CKKS), message.astype(float)
    return [
        operation(zero, operand, magnitude=LARGEST)
        for operation in (evaluator.add, evaluator.sub, evaluator.multiply, evaluator.multiply_lazy)
        for operand in (numbers, message.astype(complex), float(message[0]), int(message[0]))
    ]


WRITERS: dict[str, Writer] = {
    "Encryptor": encryptor,
    "Decryptor": decryptor,
    "EncryptionPool, public": pool(PUBLIC),
    "EncryptionPool, secret": pool(SECRET),
    "EncryptionPool, integers, public": integer_pool(BFV_PUBLIC),
    "EncryptionPool, integers, secret": integer_pool(BFV_SECRET),
    "BfvEncryptor and BfvDecryptor": integers,
    "Client and ClientEncryptor": thin,
    "SumKey": update,
    "BfvDecryptor and SearchIndex": searches,
    "Evaluator, declared operands": operands,
}
"""Everything that takes a message and gives bytes that leave its owner, with equal randomness each time."""

METHODS = {
    ("Encryptor", "encrypt"),
    ("Encryptor", "encrypt_coefficients"),
    ("Decryptor", "encrypt"),
    ("Decryptor", "encrypt_coefficients"),
    ("EncryptionPool", "encrypt"),
    ("EncryptionPool", "encrypt_coefficients"),
    ("EncryptionPool", "encrypt_integers"),
    ("EncryptionPool", "encrypt_scalar"),
    ("EncryptionPool", "encrypt_scalars"),
    ("BfvEncryptor", "encrypt"),
    ("BfvDecryptor", "encrypt"),
    ("Client", "encrypt"),
    ("ClientEncryptor", "encrypt"),
    ("SumKey", "encrypt"),
}
"""The methods that the writers above call."""

ELSEWHERE = {
    ("ThresholdKey", "encrypt"): "test_a_threshold_encryption_has_a_length_and_nothing_else",
    ("ChemEncryptor", "encrypt"): "test_chem_states_the_largest_message",
    ("ChemEncryptor", "encrypt_integers"): "test_chem_states_the_largest_message",
    ("ErrorModel", "encryption"): "predicts an error; encrypts nothing",
}

WITHOUT_MESSAGE = {
    "Parameters": "chosen before any message",
    "PublicKey": "of a secret",
    "SwitchingKey": "of a secret",
    "KeySet": "of a secret",
    "Polynomial": "public halves and partial decryptions, without a scale or a bound",
    "MasterKeys": "of a secret",
    "CkksParameters": "chosen before any message",
    "CkksPlaintext": "is not encrypted",
    "ClientParameters": "chosen before any message",
    "BfvParameters": "chosen before any message",
    "SecretKey": "never leaves its owner",
    "RlweCiphertext": "has no scale and no bound: its header has a level and a degree",
    "SeededRlweCiphertext": "has no scale and no bound: its header has a level",
}
"""Kinds that no writer writes, and why they need none."""


def messages() -> dict[str, Message]:
    random = np.random.default_rng(34)
    return {
        "zeros": np.zeros(COUNT, np.int64),
        "largest": np.full(COUNT, LARGEST, np.int64),
        "one": np.eye(COUNT, dtype=np.int64)[0],
        "random": random.integers(-LARGEST, LARGEST, COUNT, endpoint=True),
    }


def raw(thing: object) -> bytes:
    return thing if isinstance(thing, bytes) else bytes(thing.to_bytes())  # type: ignore[attr-defined]


def header(data: bytes) -> bytes:
    """Return everything before the polynomials, with the checksum of the header."""
    descriptor = HEADER.unpack_from(data)[8]
    return data[: HEADER.size + descriptor + CHECKSUM_BYTES]


def stated(thing: object) -> dict[str, str]:
    """Return every public attribute of an object that is no method and no polynomial."""
    names = [name for name in dir(thing) if not name.startswith("_")]
    values = {name: getattr(thing, name) for name in names}
    return {name: repr(value) for name, value in values.items() if not callable(value)} | {"": repr(thing)}


@pytest.mark.parametrize("name", WRITERS)
def test_messages_of_one_shape_differ_in_the_polynomials_alone(name: str) -> None:
    written = {message: WRITERS[name](values) for message, values in messages().items()}
    reference = written.pop("zeros")
    for message, things in written.items():
        assert [raw(thing) for thing in things] != [raw(zero) for zero in reference], message
        for thing, zero in zip(things, reference, strict=True):
            data, other = raw(thing), raw(zero)
            assert len(data) == len(other), message
            assert header(data) == header(other), message
            if not isinstance(thing, bytes):
                assert stated(thing) == stated(zero), message


@pytest.mark.parametrize("name", [name for name in WRITERS if name != "Evaluator, declared operands"])
def test_the_second_polynomial_of_an_encryption_does_not_see_the_message(name: str) -> None:
    """With equal randomness it is equal; where it is a seed, the header has it."""
    whole = {0x0103, 0x0203}
    things = zip(WRITERS[name](messages()["random"]), WRITERS[name](messages()["zeros"]), strict=True)
    for data, other in ((raw(thing), raw(zero)) for thing, zero in things):
        if HEADER.unpack_from(data)[2] in whole:
            body = slice(len(header(data)), -CHECKSUM_BYTES)
            half = len(data[body]) // 2
            assert data[body][half:] == other[body][half:]
            assert data[body][:half] != other[body][:half]


def test_every_kind_has_a_writer_or_a_reason() -> None:
    codes = {int(code, 16): name for name, code in re.findall(r"(\w+) = (0x[0-9a-f]{4}),", KINDS.read_text())}
    assert len(codes) == KINDS.read_text().count(" = 0x")
    written = {
        codes[HEADER.unpack_from(raw(thing))[2]]
        for write in WRITERS.values()
        for thing in write(messages()["one"])
    }
    assert written.isdisjoint(WITHOUT_MESSAGE)
    assert written | set(WITHOUT_MESSAGE) == set(codes.values())


def test_every_method_that_encrypts_is_known() -> None:
    methods = {
        (name, method)
        for name, kind in vars(_core).items()
        if isinstance(kind, type)
        for method in dir(kind)
        if method.startswith("encrypt")
    }
    assert methods - set(ELSEWHERE) == METHODS
    for test in ELSEWHERE.values():
        assert " " in test or test in globals()


@pytest.mark.parametrize("numbers", [[0.0] * 4, [8.0] * 4, [1e-9, 0.0, 0.0, 0.0]])
def test_a_default_is_of_the_parameters(numbers: list[float]) -> None:
    ciphertext = kw.Encryptor(PUBLIC, ENTROPY).encrypt(numbers, SLOTS)
    assert ciphertext.magnitude_bound == CKKS.default_magnitude
    # 2^12 above the scale: two messages of 2^5 have a product of 2^10, with a sign, below.
    assert CKKS.default_magnitude == 32.0


@pytest.mark.parametrize("declared", [None, 2.0])
def test_a_message_above_its_declaration_is_refused_by_its_owner(declared: float | None) -> None:
    limit = CKKS.default_magnitude if declared is None else declared
    above, below = [0.0, -1.001 * limit], [0.0, -limit]
    with kw.EncryptionPool(PUBLIC, 2, threads=0) as entries:
        for write in (
            lambda x: kw.Encryptor(PUBLIC).encrypt(x, SLOTS, magnitude=declared),
            lambda x: kw.Encryptor(PUBLIC).encrypt(np.asarray(x) * 1j, SLOTS, magnitude=declared),
            lambda x: kw.Encryptor(PUBLIC).encrypt_coefficients(x, magnitude=declared),
            lambda x: kw.Decryptor(SECRET).encrypt(x, SLOTS, magnitude=declared),
            lambda x: kw.Decryptor(SECRET).encrypt_coefficients(x, magnitude=declared),
            lambda x: entries.encrypt(x, SLOTS, declared),
            lambda x: entries.encrypt_coefficients(x, declared),
            lambda x: entries.encrypt_scalar(x[1], SLOTS, declared),
            lambda x: entries.encrypt_scalars(x, SLOTS, declared),
        ):
            with pytest.raises(kw.errors.EncodeError, match="declare a larger magnitude") as refusal:
                write(above)
            assert refusal.value.magnitude == limit
            write(below)


@pytest.mark.parametrize("magnitude", [0.0, -1.0, float("nan"), float("inf"), 5e-324])
def test_a_declaration_is_a_positive_number(magnitude: float) -> None:
    with pytest.raises(kw.errors.ParameterError, match="magnitude"):
        kw.Encryptor(PUBLIC).encrypt([0.0], SLOTS, magnitude=magnitude)


def test_a_ciphertext_states_its_own_magnitude() -> None:
    zero = kw.Encryptor(PUBLIC).encrypt([0.0], SLOTS)
    with pytest.raises(kw.errors.EncodeError, match="a ciphertext states its own"):
        kw.Evaluator(CKKS).add(zero, zero, magnitude=1.0)
    declared = kw.Evaluator(CKKS).declare(zero, 3.0)
    assert (declared.magnitude_bound, zero.magnitude_bound) == (3.0, CKKS.default_magnitude)


def test_a_threshold_encryption_has_a_length_and_nothing_else() -> None:
    """Its randomness cannot be given, so its header and its length are compared."""
    parameters = ThresholdParameters(3, 2, max_inputs=3, magnitude=LARGEST, max_values=COUNT)
    parties = [ThresholdParty.generate(parameters, ENTROPY) for _ in range(3)]
    key = ThresholdKey.combine(parameters, ENTROPY, [party.public_half() for party in parties])
    written = [key.encrypt(values) for values in messages().values()]
    assert {len(data) for data in written} == {len(written[0])}
    assert {header(data) for data in written} == {header(written[0])}


@pytest.mark.skipif(not hasattr(_core, "ChemEncryptor"), reason="this build has no insecure scheme")
def test_chem_states_the_largest_message() -> None:
    from keywright.insecure import ChemEncryptor

    for public in (PUBLIC, BFV_PUBLIC):
        chem = ChemEncryptor(public, CHEM_BITS, acknowledge="Chem does not hide messages", entropy=ENTROPY)
        encrypt = chem.encrypt if public is PUBLIC else chem.encrypt_integers
        written = encrypt([0, 1, 200, (1 << CHEM_BITS) - 1])
        assert len({header(raw(thing)) for thing in written}) == 1
        assert len({str(stated(thing)) for thing in written}) == 1
