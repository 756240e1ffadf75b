"""Statements of KDS and ARK that their own tables contradict, and counts that they state."""

from __future__ import annotations

import pytest
from keywright.plan import AutomorphismGroup
from keywright.plan.strategies.powers import signed_powers
from studies.bootstrapping_keys.paper import TABLE_5
from studies.network_keys.ark import TABLE_1, TABLES_2_3
from studies.network_keys.kds import ROWS

pytestmark = pytest.mark.full


def test_dynamic_alpha_takes_more_memory_at_six_of_eleven_depths_of_table_5() -> None:
    stated = {depth: row for depth, row in TABLE_5.items() if row.dynamic is not None}
    more = [depth for depth, row in stated.items() if (row.dynamic or 0) > row.alpha_1]
    assert len(stated) == 11
    assert more == [16, 14, 12, 8, 4, 2]
    below_the_maximum = [d for d, row in stated.items() if (row.dynamic or 0) < (row.maximum or 0)]
    assert below_the_maximum == [11, 10, 9]


def test_keys_of_alpha_1_in_table_5_are_38_with_a_prime_fewer() -> None:
    # Depth + 16 primes, a digit each, and a special prime: the formula has depth + 17 primes in a digit.
    counted = {depth: round(38 * 2**20 * (depth + 16) ** 2 / 1e9, 3) for depth in TABLE_5}
    assert counted == {depth: row.alpha_1 for depth, row in TABLE_5.items()}


def test_only_alpha_1_divides_the_primes_of_five_depths() -> None:
    # Section 3.1: alpha divides 1 + #Q, which is the depth and the 15 levels of a bootstrapping and 1.
    alone = [depth for depth in range(16, 0, -1) if all((depth + 16) % alpha for alpha in range(2, 16))]
    assert alone == [15, 13, 7, 3, 1]


def test_keys_of_fhe_mp_cnn_are_not_nine_times_those_for_powers_of_two() -> None:
    # Tables 6 and 7: GRU + MLP, SqueezeNet, ResNet-20; all required over powers of two, keys at all levels.
    gigabytes = {(index, alpha): printed for index, alpha, level, *printed in ROWS if level == "all"}
    pairs = zip(gigabytes["all required", "1"], gigabytes["power of two", "1"], strict=True)
    quotients = [float(every) / float(powers) for (every,), (powers,) in pairs]
    assert round(max(quotients), 1) == 5.5
    assert [round(float(every)) for (every,) in gigabytes["all required", "1"]] == [307, 253, 276]


def test_other_operations_differ_between_the_columns_of_table_4() -> None:
    powers_of_two, all_required = (47_507, 4_210, 27_824, 79_541), (24_637, 6_210, 27_824, 58_671)
    for *parts, total in (powers_of_two, all_required):
        assert sum(parts) == total
    assert powers_of_two[1] != all_required[1]


def test_bootstraps_of_table_4_are_eight_and_twenty_of_table_2() -> None:
    assert [round(total / 3335) for total in (27_824, 66_082)] == [8, 20]
    assert 58_671 - 27_824 == 30_847


def test_there_are_29_signed_powers_of_two_of_32768_slots() -> None:
    group = AutomorphismGroup(16)
    kept = {key for step in range(1, 2**15) for key in signed_powers(group, group.rotation(step))}
    assert len(kept) == 2 * 15 - 1


def _shares(mode: str, case: int) -> tuple[list[float], list[float], list[float]]:
    """Percent of memory saved, of time added, of key generation saved; a setting each."""
    rows = [row for (_, name), row in TABLES_2_3.items() if name == mode]
    return (
        [100 * (1 - row.gigabytes[case] / row.gigabytes[0]) for row in rows],
        [100 * (row.seconds[case] / row.seconds[0] - 1) for row in rows],
        [100 * (1 - row.generation[case] / row.generation[0]) for row in rows],
    )


def test_savings_of_ark_in_its_text_are_not_those_of_its_tables() -> None:
    memory = [_shares("ark-memory", case) for case in (1, 2)]
    speed = [_shares("ark-time", case) for case in (1, 2)]
    saved = [share for saving, _, _ in memory for share in saving]
    assert round(min(saved), 2) == 25.33  # section IV.C: 25.70
    assert round(max(saved), 2) == 41.17
    generation = [share for _, _, saving in (*memory, *speed) for share in saving]
    assert round(max(generation), 2) == 59.44  # 57.25
    assert round(min(generation), 2) == 43.62  # 41.06
    assert min(row.generation[case] for row in TABLES_2_3.values() for case in (1, 2)) == 202  # 205
    mean_memory = sum(saved) / len(saved)
    mean_speed = sum(share for saving, _, _ in speed for share in saving) / 12
    assert round(mean_memory - mean_speed, 1) == 2.4  # 7.40
    assert round(100 * (mean_memory / mean_speed - 1), 1) == 8.2


def test_the_conclusion_of_ark_joins_the_memory_of_one_setting_and_the_time_of_another() -> None:
    cases = {
        setting: (
            100 * (1 - row.gigabytes[1] / row.gigabytes[0]),
            100 * (row.seconds[1] / row.seconds[0] - 1),
        )
        for (setting, mode), row in TABLES_2_3.items()
        if mode == "ark-time"
    }
    (setting,) = [name for name, (saved, _) in cases.items() if round(saved, 2) == 22.75]
    assert cases[setting][1] > 1  # the text: 0.21
    assert min(added for _, added in cases.values()) > 0.2


def test_memory_of_the_same_program_differs_within_table_2() -> None:
    own = {
        setting: {row.gigabytes[0] for (name, _), row in TABLES_2_3.items() if name == setting}
        for setting in TABLE_1
    }
    assert [setting for setting, figures in own.items() if len(figures) > 1] == ["5-20-1", "3-14-3", "3-20-3"]


def test_one_share_of_table_1_is_not_its_quotient() -> None:
    wrong = [
        s for s, (keys, everything, share) in TABLE_1.items() if abs(100 * keys / everything - share) > 0.01
    ]
    assert wrong == ["5-20-1"]
