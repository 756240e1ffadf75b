import random

import keywright as kw
import numpy as np
import pytest
from keywright.plan import AutomorphismGroup
from keywright.plan.ring.galois import Automorphism

ROT2 = [3, 5, 9, 17, 33, 65, 129, 257, 513, 1025, 2049, 4097, 8193, 16385, 32769, 65537]


def test_galois_elements_multiply_where_automorphisms_add() -> None:
    random.seed(1)
    for log_n in (2, 3, 5, 10, 16):
        group = AutomorphismGroup(log_n)
        for _ in range(50):
            a, b = (Automorphism(random.randrange(group.slots), random.random() < 0.5) for _ in range(2))
            product = group.galois_element(a) * group.galois_element(b) % group.modulus
            assert group.galois_element(group.add(a, b)) == product
            assert group.add(group.subtract(a, b), b) == a


def test_every_odd_number_is_one_automorphism() -> None:
    group = AutomorphismGroup(6)
    elements = [group.from_galois_element(g) for g in range(1, group.modulus, 2)]
    assert len(set(elements)) == 1 << 6
    assert [group.galois_element(a) for a in elements] == list(range(1, group.modulus, 2))


@pytest.mark.parametrize("g", [0, 2, 131072, 131073, -5])
def test_other_numbers_are_refused(g: int) -> None:
    with pytest.raises(ValueError, match="odd number"):
        AutomorphismGroup(16).from_galois_element(g)


def test_sums_of_the_list_rot2_are_other_automorphisms() -> None:
    """ARK makes X -> X^5 of {3, 3, -1}: neither three rotations nor three Galois elements give it."""
    group = AutomorphismGroup(16)
    expected = group.from_galois_element(5)
    assert expected == group.rotation(1)
    steps = group.add(group.add(group.rotation(3), group.rotation(3)), group.rotation(-1))
    assert steps == group.rotation(5) != expected
    three, minus_one = group.from_galois_element(3), group.from_galois_element(group.modulus - 1)
    assert group.galois_element(group.add(group.add(three, three), minus_one)) == group.modulus - 9
    # The same for every second number of the list: 2^(n+1) + 1 as twice 2^n + 1, less 1.
    for smaller, larger in zip(ROT2[::2], ROT2[1::2], strict=True):
        twice = group.add(group.from_galois_element(smaller), group.from_galois_element(smaller))
        assert group.add(twice, minus_one) != group.from_galois_element(larger)


def test_sums_of_the_list_rot2_on_ciphertexts() -> None:
    parameters = kw.Parameters.from_bits(10, [50, 40], [50], 40, insecure=True)
    group = AutomorphismGroup(10)
    secret = kw.SecretKey.generate(parameters)
    generator = kw.KeyGenerator(secret)
    steps = {3, group.slots - 1, 1, group.from_galois_element(3).step}
    keys = generator.evaluation_keys(rotations=sorted(steps), conjugation=True, relinearization=False)
    evaluator, decryptor = kw.Evaluator(parameters, keys), kw.Decryptor(secret)
    values = np.random.default_rng(7).uniform(-1, 1, group.slots)
    fresh = kw.Encryptor(generator.public_key()).encrypt(values)

    def apply(ciphertext: kw.Ciphertext, automorphism: Automorphism) -> kw.Ciphertext:
        if automorphism.step:
            ciphertext = evaluator.rotate(ciphertext, automorphism.step)
        return evaluator.conjugate(ciphertext) if automorphism.conjugate else ciphertext

    def decrypt(*automorphisms: Automorphism) -> np.ndarray:
        ciphertext = fresh
        for automorphism in automorphisms:
            ciphertext = apply(ciphertext, automorphism)
        message = decryptor.decrypt(ciphertext)
        # An automorphism maps the slots: their values are those before, in another order.
        assert np.abs(np.sort(message) - np.sort(values)).max() < ciphertext.error_bound
        return np.asarray(message)

    expected = decrypt(group.from_galois_element(5))
    assert np.abs(expected - np.roll(values, -1)).max() < 1e-6
    as_steps = decrypt(group.rotation(3), group.rotation(3), group.rotation(-1))
    three, conjugation = group.from_galois_element(3), Automorphism(0, True)
    as_elements = decrypt(three, three, conjugation)
    for rotated in (as_steps, as_elements):
        assert np.abs(rotated - expected).max() > 0.1
