import numpy as np
import pytest
from studies.federated_averaging import ways
from studies.federated_averaging.__main__ import WAYS, by_exchange, measure
from studies.federated_averaging.flower import Federation, FlowerSecAgg
from studies.federated_averaging.updates import Model
from studies.federated_averaging.ways import OneByOne

SETTING = {"model": "tiny", "partition": "iid", "clients": 4}
STAGES = ["setup", "share_keys", "collect_masked_vectors", "unmask", "all"]


@pytest.fixture
def updates() -> list[Model]:
    rng = np.random.default_rng(3)
    return [{"w": rng.uniform(-1, 1, (7, 30)).astype(np.float32)} for _ in range(4)]


@pytest.mark.parametrize(
    ("name", "exchanges", "asked"),
    [
        ("plain", ["train", "all"], [4, 4]),
        ("shared", ["train", "all"], [4, 4]),
        ("threshold", ["train", "decrypt", "all"], [4, 2, 2]),
        ("secagg", STAGES, [4] * 5),
    ],
)
def test_every_exchange_of_a_round_is_counted(
    updates: list[Model], name: str, exchanges: list[str], asked: list[int]
) -> None:
    used = [way for way in WAYS[name](len(updates)) if isinstance(way, Federation)]
    assert used
    rows = list(measure(updates, SETTING, list(used), 2, warm=False))
    assert len(rows) == 2 * len(used)
    for row in rows:
        assert [e["name"] for e in row["exchanges"]] == exchanges
        assert [e["clients"] for e in row["exchanges"]] == asked
        *each, total = row["exchanges"]
        assert sum(e["up_bytes"] for e in each) == pytest.approx(total["up_bytes"], rel=0.01)
        assert ("setup" in row) == (name == "threshold")
    lines = by_exchange({way.name: [row for row in rows if row["way"] == way.name] for way in used})
    assert len({line.count("|") for line in lines}) == 1
    assert len(lines) == 2 + len(used) * len(exchanges) + (4 if name == "threshold" else 0)


def test_a_round_without_an_average_is_not_timed(updates: list[Model]) -> None:
    way = FlowerSecAgg(4, 4)
    way.workflow.reconstruction_threshold = 5
    with pytest.raises(SystemExit):
        way.round(updates)
    with pytest.raises(SystemExit):
        FlowerSecAgg(16, 16)


@pytest.mark.parametrize("bits", [None, 8])
def test_a_whole_update_has_a_ciphertext_for_each_value(
    updates: list[Model], bits: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ways, "SAMPLE", 8)
    sample, whole = OneByOne(bits), OneByOne(bits, whole=True)
    assert (sample.extrapolated, whole.extrapolated) == (True, False)
    updates = [{"w": update["w"][:1]} for update in updates]  # a ciphertext for each value takes long
    (row,) = measure(updates, SETTING, [whole], 1, warm=True)
    values = updates[0]["w"].size
    one = len(whole.encrypt(np.zeros(1))[0])
    assert row["update_bytes"] == values * one
    assert row["client_cpu_s"] > 0
    assert sample.round(updates).update_bytes == pytest.approx(values * one)
