import random
from itertools import combinations, product
from math import inf

import pytest
from keywright.plan import AutomorphismGroup, smallest_basis, smallest_shared_basis
from keywright.plan.basis.basis_search import BasisSearch, SearchTimeoutError
from keywright.plan.basis.group_codes import GroupCodes
from keywright.plan.ring.galois import Automorphism
from studies.network_keys.ark import KERNEL, ROT1, ROT2


def served(group: AutomorphismGroup, keys: tuple[Automorphism, ...]) -> set[Automorphism]:
    return {*keys, *(group.add(a, b) for a in keys for b in keys)}


def brute_force(group: AutomorphismGroup, targets: set[Automorphism]) -> int:
    every = [Automorphism(step, c) for step in range(group.slots) for c in (False, True)][1:]
    for size in range(len(targets) + 1):
        if any(targets <= served(group, keys) for keys in combinations(every, size)):
            return size
    raise AssertionError


def lists_of_ark(group: AutomorphismGroup) -> dict[str, set[Automorphism]]:
    return {
        "rot1": {group.rotation(step) for step in ROT1},
        "rot2": {group.from_galois_element(g) for g in ROT2},
        "kernel": {group.rotation(step) for step in KERNEL},
    }


def search(group: AutomorphismGroup, targets: set[Automorphism], size: int) -> set[Automorphism] | None:
    codes = GroupCodes(group)
    basis = BasisSearch(codes, sorted(map(codes.encode, targets)), size, inf).run()
    return None if basis is None else set(map(codes.decode, basis))


@pytest.mark.parametrize("log_n", [2, 3, 4, 16])
def test_codes_add_as_automorphisms_do(log_n: int) -> None:
    rng = random.Random(log_n)
    group = AutomorphismGroup(log_n)
    codes = GroupCodes(group)
    few = [Automorphism(rng.choice((0, 1, -1, rng.randrange(group.slots))) % group.slots, rng.random() < 0.5)]
    few += [
        Automorphism(step % group.slots, c) for step in (0, 1, -1, group.slots // 2) for c in (False, True)
    ]
    for a, b in product(few, few):
        assert codes.decode(codes.encode(a)) == a
        assert codes.decode(codes.add(codes.encode(a), codes.encode(b))) == group.add(a, b)
        assert codes.decode(codes.subtract(codes.encode(a), codes.encode(b))) == group.subtract(a, b)
    if log_n < 16:
        every = [Automorphism(step, c) for step in range(group.slots) for c in (False, True)]
        for a in every:
            halves = {codes.decode(half) for half in codes.halves(codes.encode(a))}
            assert halves == {b for b in every if group.add(b, b) == a}


def test_small_groups_against_every_set_of_keys() -> None:
    random.seed(3)
    for log_n, counts in ((3, (1, 2, 3, 4, 5, 6, 7)), (4, (1, 2, 3, 4, 5, 6, 8, 10)), (5, (4, 6))):
        group = AutomorphismGroup(log_n)
        every = [Automorphism(step, c) for step in range(group.slots) for c in (False, True)][1:]
        for count in counts:
            for _ in range(3):
                targets = set(random.sample(every, count))
                fewest = brute_force(group, targets)
                basis = smallest_basis(group, targets)
                assert basis.proven
                assert targets <= served(group, basis.keys)
                assert len(basis.keys) == fewest
                # The search alone, which does not know a small basis.
                solution = search(group, targets, fewest)
                assert solution is not None
                assert targets <= served(group, tuple(solution))
                assert fewest == 1 or search(group, targets, fewest - 1) is None


def test_planted_bases_of_a_large_group_are_found() -> None:
    """Random keys and random targets that they make; some targets are all sums, so that no key is a
    target."""
    rng = random.Random(5)
    group = AutomorphismGroup(16)
    for size, count in ((4, 7), (5, 9), (5, 12), (6, 12), (6, 15)):
        for kind in ("all", "sums", "doubles", "two sides"):
            keys = [Automorphism(rng.randrange(group.slots), rng.random() < 0.5) for _ in range(size)]
            served_elements = {group.add(a, b) for a, b in combinations(keys, 2)}
            if kind == "all":
                served_elements |= served(group, tuple(keys))
            elif kind == "doubles":
                served_elements |= {group.add(a, a) for a in keys}
            elif kind == "two sides":
                served_elements = {
                    group.add(a, b) for a, b in product(keys[: size // 2], keys[size // 2 :])
                } | {keys[0]}
            targets = set(
                rng.sample(sorted(served_elements - {Automorphism(0)}), min(count, len(served_elements) - 1))
            )
            basis = search(group, targets, size)
            assert basis is not None
            assert len(basis) <= size
            assert targets <= served(group, tuple(basis))


def test_lists_of_ark() -> None:
    group = AutomorphismGroup(16)
    lists = lists_of_ark(group)
    for name, fewest in (("rot1", 5), ("kernel", 7)):
        basis = smallest_basis(group, lists[name])
        assert lists[name] <= served(group, basis.keys)
        assert (len(basis.keys), basis.lower_bound) == (fewest, fewest)
    # Eight and nine take minutes: `python -m studies.network_keys` in benchmarks/ searches them.
    assert [search(group, lists["rot2"], size) for size in (5, 6, 7)] == [None] * 3


def test_when_the_search_takes_too_long_the_best_basis_known_is_returned(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    group = AutomorphismGroup(16)
    targets = lists_of_ark(group)["rot2"]
    run = BasisSearch.run

    def late(search_of_size: BasisSearch) -> list[int] | None:
        if search_of_size.size == 7:
            search_of_size.deadline = -inf
        return run(search_of_size)

    monkeypatch.setattr(BasisSearch, "run", late)
    basis = smallest_basis(group, targets, seconds=inf)
    assert targets <= served(group, basis.keys)
    assert (len(basis.keys), basis.lower_bound) == (10, 7)
    assert not basis.proven
    codes = GroupCodes(group)
    with pytest.raises(SearchTimeoutError):
        BasisSearch(codes, sorted(map(codes.encode, targets)), 7, inf).run()


def made_of_one(group: AutomorphismGroup, targets: set[Automorphism], keys: tuple[Automorphism, ...]) -> bool:
    """Check that wanted results alone serve all targets in two hops."""
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
        # Separate ciphertexts may be rotated through unwanted results.
        assert smallest_basis(group, targets).lower_bound <= len(basis.keys)
    late = smallest_shared_basis(group, every, seconds=-1.0)
    assert not late.proven
    assert set(late.keys) == set(every)


def test_lists_of_ark_of_one_ciphertext() -> None:
    group = AutomorphismGroup(16)
    lists = lists_of_ark(group)
    for name, fewest in (("rot1", 6), ("rot2", 11), ("kernel", 7)):
        basis = smallest_shared_basis(group, lists[name], seconds=inf)
        assert made_of_one(group, lists[name], basis.keys)
        assert (len(basis.keys), basis.lower_bound) == (fewest, fewest)


def test_without_time_the_targets_are_kept() -> None:
    group = AutomorphismGroup(16)
    targets = {group.rotation(pow(3, k, 32768)) for k in range(40)}
    basis = smallest_basis(group, targets, seconds=-1.0)
    assert set(basis.keys) == targets
    assert not basis.proven
    assert 8 <= basis.lower_bound < 40  # 7 keys and 28 sums are 35
