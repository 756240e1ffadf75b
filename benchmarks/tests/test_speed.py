import re
from typing import Any

import pytest
from harness.folders import HERE
from studies.speed import page
from studies.speed.cases import Case, cases, operations
from studies.speed.variants import CHOICES, FORMER, NETWORKS, chosen, plan_of, sparse


def row(preset: str, values: str, work: float, seconds: list[float]) -> list[dict[str, Any]]:
    levels, vectors = 10, 2 if values == "pair" else 1
    common = {
        "preset": preset,
        "values": values,
        "levels_left": levels,
        "vectors": vectors,
        "worst_bits": 20.0,
        "key_bytes": 1.5e9,
    }
    half = {"butterflies": work / 2, "multiply_adds": work / 2}
    first = {"slots_to_coeffs": {"butterflies": 0.5, "multiply_adds": 0.5}}
    times = [{"kind": "time", "round": i, "median_s": s, **common} for i, s in enumerate(seconds)]
    return [{"kind": "count", **common, **half, **first}, *times]


ROWS = [
    *row("N16_QP1745_L15_S40", "complex", 20.0, [4.0, 8.0]),
    *row("N16_QP1605_L10_S40", "complex", 22.0, [5.0, 9.0]),
    *row("N16_QP1745_L15_S40_real", "real", 12.0, [2.0, 4.0]),
    *row(FORMER, "real", 10.0, [3.0, 5.0]),
    *row("N16_QP1745_L15_S40", "pair", 8.0, [1.0, 1.0]),
    *row("new", "complex", 15.0, [3.0, 4.0]),
    *row("new", "pair", 14.0, [3.0, 4.0]),
    *row("new_real", "real", 9.0, [2.0, 2.0]),
]


def test_ratios_are_of_the_best_old_preset_in_the_same_round() -> None:
    complex_, real = page.targets(ROWS)[2:]
    # 3/4 and 4/8 of the seconds; old presets of real values are no pairs.
    assert complex_ == "| complex values | `new`, complex | 0.75 | 0.6 | 0.62 | 0.65 |"
    assert real == "| real values | `new`, two ciphertexts at once | 0.70 | 0.55 | 0.62 | 0.6 |"


def test_a_reduction_is_what_real_values_save() -> None:
    assert page.parts(ROWS)[2:] == [
        "| `N16_QP1745_L15_S40` | 1.00 | 3.00 | 16.00 | 20.00 |",
        "| `new` | 1.00 | 2.00 | 12.00 | 15.00 |",
    ]


def test_presets_of_complex_values_have_pairs() -> None:
    name = "N16_QP1745_L15_S40"
    expected = [Case(name, "complex"), Case(name, "pair"), Case(f"{name}_real", "real")]
    assert cases(name) == expected
    assert [case.vectors for case in expected] == [1, 2, 1]
    assert cases(FORMER) == [Case(FORMER, "real")]


def test_products_with_both_halves_count_twice() -> None:
    after = {
        "transforms": [8, 8],
        "conversions": [1, 0],
        "seeded_products": [1, 1],
        "stored_products": [0, 1],
    }
    after |= {"products": [1, 0], "visits": [5, 5]}
    counts = operations({name: [0, 0] for name in after}, after, 16)
    assert counts == pytest.approx({"butterflies": 128e-9, "multiply_adds": 8e-9})


def test_two_ciphertexts_at_one_place_share_a_bootstrap() -> None:
    apart = [{"ciphertexts": count} for count in (1, 2, 3)]
    paired = [{**place, "bootstraps": -(-place["ciphertexts"] // 2)} for place in apart]
    rows = [
        {"kind": "planned", "network": "resnet20-aespa", "batch": 8, **row}
        for row in (
            {"places": apart, "work": 8.0, "predicted_s": 4.0},
            {"places": paired, "work": 6.0, "predicted_s": 3.5},
        )
    ]
    assert page.planned_programs(rows)[2:] == [
        "| squares, 8 images | 6 | 4 | 8.0 | 6.0 | 0.75 | 4.0 s, 3.5 s |"
    ]


def test_lattigo_is_compared_within_each_round() -> None:
    taken = {"avx512": [0.1, 0.2], "avx2": [0.2, 0.4], "lattigo": [0.4, 1.2]}
    common: dict[str, Any] = {"work": "rotate", "level": 3, "alpha": 5}
    rows: list[dict[str, Any]] = [{"kind": "machine", "machine": []}]
    rows += [
        {"target": name, "median_s": one, **common} for name, seconds in taken.items() for one in seconds
    ]
    text = "| a rotation | 3 | 5 | 150.0 ms | 300.0 ms | 800.0 ms | 5.0 | 2.5 |"
    assert page.beside_lattigo(rows)[2:] == [text]


def test_threads_are_compared_by_medians_of_wall_time() -> None:
    rows = [
        {"preset": "new", "values": "real", "threads": threads, "wall_s": wall, "median_s": seconds}
        for threads, wall, seconds in ((1, [2.1, 9.0, 2.0], 2.0), (2, [1.4, 1.3, 8.0], 2.5))
    ]
    assert page.by_threads(rows)[2:] == ["| `new`, real | 2.10 s | 1.40 s | 1.50 | 2.00 s | 2.50 s |"]


def test_images_of_a_batch_are_compared_with_a_single_one() -> None:
    facts = {"key_bytes": 1e9}
    rows = [
        {"kind": "time", "batch": batch, "processor_s": seconds, "facts": facts, "peak_bytes": 2e9}
        for batch, seconds in ((64, 0.01), (1, 0.7), (1, 0.5))
    ]
    assert page.by_batch(rows)[2:] == [
        "| 1 | 500 ms | 1.00 | 1.00 GB | 2.0 GB |",
        "| 64 | 10 ms | 50.00 | 1.00 GB | 2.0 GB |",
    ]


@pytest.mark.parametrize(
    ("numbers", "preset"),
    [(numbers, name[1]) for key, numbers in NETWORKS.items() if (name := re.search("`(.*)`", key))],
)
def test_variants_that_name_a_preset_have_its_numbers(numbers: Any, preset: str) -> None:
    runs, special, choices = numbers
    parameters = chosen(runs, special)
    plan, shipped = sparse(parameters, {**CHOICES, **choices}), plan_of(preset)
    assert (parameters.q, parameters.p) == (shipped.parameters.q, shipped.parameters.p)
    assert (plan.levels_left, plan.levels) == (shipped.levels_left, shipped.levels)


def test_the_page_is_what_the_last_record_makes() -> None:
    written = (HERE.parent / "docs" / "reproduction" / "speed.md").read_text(encoding="utf-8")
    assert written == page.page(page.last_records(HERE / "record"))
