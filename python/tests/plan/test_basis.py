import random
from itertools import combinations

from keywright.plan import Automorphism, AutomorphismGroup, smallest_basis, smallest_shared_basis

ROT1 = [1152, 4608, 4224, 7680, 9216, 384, 3840, 7296, 8448, 1536, 5760, 3072, 5376, 768, 2304]
KERNEL = [32 * i + j for i in range(-2, 3) for j in range(-2, 3) if (i, j) != (0, 0)]


def served(group: AutomorphismGroup, keys: tuple[Automorphism, ...]) -> set[Automorphism]:
    return {*keys, *(group.add(a, b) for a in keys for b in keys)}


def brute_force(group: AutomorphismGroup, targets: set[Automorphism]) -> int:
    every = [Automorphism(step, c) for step in range(group.slots) for c in (False, True)][1:]
    for size in range(len(targets) + 1):
        if any(targets <= served(group, keys) for keys in combinations(every, size)):
            return size
    raise AssertionError


def test_small_groups_against_every_set_of_keys() -> None:
    random.seed(3)
    group = AutomorphismGroup(4)
    every = [Automorphism(step, c) for step in range(group.slots) for c in (False, True)][1:]
    for count in (1, 2, 3, 4, 5, 6, 8, 10):
        for _ in range(3):
            targets = set(random.sample(every, count))
            basis = smallest_basis(group, targets)
            assert basis.proven
            assert targets <= served(group, basis.keys)
            assert len(basis.keys) == brute_force(group, targets)


def test_lists_of_ark() -> None:
    group = AutomorphismGroup(16)
    for steps, fewest in ((ROT1, 5), (KERNEL, 7)):
        targets = {group.rotation(step) for step in steps}
        basis = smallest_basis(group, targets)
        assert targets <= served(group, basis.keys)
        assert (len(basis.keys), basis.lower_bound) == (fewest, fewest)


def made_of_one(group: AutomorphismGroup, targets: set[Automorphism], keys: tuple[Automorphism, ...]) -> bool:
    """In two hops, over wanted results alone."""
    direct = targets & set(keys)
    return targets <= direct | {group.add(first, key) for first in direct for key in keys}


def test_one_ciphertext_in_small_groups_against_every_set_of_keys() -> None:
    rng = random.Random(4)
    group = AutomorphismGroup(4)
    every = [Automorphism(step, c) for step in range(group.slots) for c in (False, True)][1:]
    for count in (1, 2, 3, 5, 7, 9):
        targets = set(rng.sample(every, count))
        basis = smallest_shared_basis(group, targets)
        assert basis.proven
        assert made_of_one(group, targets, basis.keys)
        assert not any(made_of_one(group, targets, keys) for keys in combinations(every, len(basis.keys) - 1))
        # Ciphertexts of their own may be rotated over results that nobody wants.
        assert smallest_basis(group, targets).lower_bound <= len(basis.keys)
    late = smallest_shared_basis(group, every, seconds=-1.0)
    assert not late.proven
    assert set(late.keys) == set(every)


def test_without_time_the_targets_are_kept_and_the_bound_is_by_counting() -> None:
    group = AutomorphismGroup(16)
    targets = {group.rotation(pow(3, k, 32768)) for k in range(40)}
    basis = smallest_basis(group, targets, seconds=0.0)
    assert set(basis.keys) == targets
    assert not basis.proven
    assert basis.lower_bound == 8  # 8 keys and 36 sums are 44
