"""The worked examples of the paper: figures 1, 5 and 6."""

from keywright.plan.strategies.rotation_patterns import (
    OURS,
    TEXT,
    find_geometric_patterns,
    find_symmetric_patterns,
    merge,
    pattern_keys,
    symmetric_keys,
)
from studies.network_keys.ark import KERNEL as AROUND
from studies.network_keys.ark import POWERS, ROT1, ROT2

KERNEL = [*AROUND, 0]


def test_figure_5() -> None:
    patterns = find_symmetric_patterns(KERNEL)
    assert patterns == {1: sorted(KERNEL)}
    merged = merge(KERNEL, [symmetric_keys(patterns)])
    assert merged.keys == (-64, -32, -2, -1, 1, 2, 32, 64)
    assert merged.decompositions[-66] == (-64, -2)
    assert merged.decompositions[-65] == (-64, -1)
    assert merged.decompositions[-64] == (-64,)
    assert merged.decompositions[-63] == (-64, 1)
    assert merged.decompositions[66] == (64, 2)
    assert pattern_keys(KERNEL, "memory").keys == merged.keys


def test_figure_6_of_rot1() -> None:
    patterns = find_geometric_patterns(ROT1)
    for offset, numbers in {
        256: {384, 768, 2304, 8448},
        1024: {1152, 1536, 3072, 9216},
        3584: {3840, 7680},
        4096: {4224, 4608},
        5248: {5376, 5760, 7296},
    }.items():
        assert numbers <= set(patterns[offset])
    scheme = pattern_keys(ROT1, "memory")
    printed = {
        384: (128, 256),
        768: (512, 256),
        2304: (2048, 256),
        1152: (128, 1024),
        1536: (512, 1024),
        7296: (2048, 5248),
    }
    for number, sums in printed.items():
        assert sorted(scheme.decompositions[number]) == sorted(sums)
    # The figure's groups need these nine; the text says "approximately 46 %" fewer than fifteen.
    assert scheme.keys == (128, 256, 512, 1024, 2048, 3584, 4096, 5248, 8192)


def test_figure_6_of_rot2() -> None:
    scheme = pattern_keys(ROT2, "memory")
    assert scheme.keys == (-1, 3, 9, 33, 129, 513, 2049, 8193, 32769)
    assert scheme.decompositions[5] == (3, 3, -1)
    assert scheme.decompositions[17] == (9, 9, -1)
    assert scheme.decompositions[65537] == (32769, 32769, -1)
    assert scheme.decompositions[9] == (9,)


def test_decompositions_sum_to_what_they_serve() -> None:
    for numbers in (
        ROT1,
        ROT2,
        KERNEL,
        POWERS,
        [2**n - 1 for n in range(2, 9)],
        list(range(11)),
        [7],
        [],
        [-5, 1000, 77, 78, 79],
    ):
        for priority in ("memory", "time"):
            for reading in (OURS, TEXT):
                scheme = pattern_keys(numbers, priority, reading)
                assert set(scheme.decompositions) == set(numbers) - {0}
                for number, sums in scheme.decompositions.items():
                    assert sum(sums) == number
                    assert set(sums) <= set(scheme.keys)


def test_powers_of_two_by_the_text() -> None:
    """Section III.C: of 2, 4 ... 128 every second one has a key, and the others are twice the one before."""
    scheme = pattern_keys(POWERS, "memory", TEXT)
    assert scheme.keys == (2, 8, 32, 128)
    assert scheme.decompositions[64] == (32, 32)
    assert pattern_keys(POWERS, "memory").keys == tuple(POWERS)


def test_runs_of_two_by_the_text() -> None:
    assert find_symmetric_patterns([1, 2, 10], OURS) == {1: [1, 2]}
    assert find_symmetric_patterns([1, 2, 10], TEXT) == {}
    for reading in (OURS, TEXT):
        assert find_symmetric_patterns([1, 2, 3, 10], reading) == {1: [1, 2, 3]}
