"""The page on key sets: ARK's tables as copied, its figures as drawn."""

import re
from pathlib import Path
from string import Template

import pytest
from harness.pages.prose import wrapped
from keywright.plan import STRATEGIES, CostModel
from studies.network_keys import __main__ as study
from studies.network_keys import ark, kds, pictures, printed
from studies.network_keys.rotation_lists import workloads

PAGE = Path(pictures.__file__).parent / "page.md"


def test_tables_of_ark_have_the_extremes_of_its_text() -> None:
    saved = [share[0] for setting in ark.shares().values() for share in setting]
    assert round(max(saved), 2) == 41.17
    assert round(min(saved), 2) == 18.26
    one_layer = {(layer.encoding, layer.whose): layer for layer in ark.FIGURE_7}
    ark_gb, own_gb = one_layer["slots", "ARK"].gigabytes, one_layer["slots", "ConvFHE"].gigabytes
    assert round(100 * (1 - ark_gb / own_gb), 2) == 59.54


def test_tables_of_kds_are_keys_of_two_to_the_thirty() -> None:
    assert kds.published_bytes(16, 30, 1) == 1040187392
    assert "257 | 275.952 |" in kds.key_bytes()
    assert "553.648 (515.6)" in kds.as_printed()


def test_figures_are_the_same_bytes_again(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    layers = {
        (encoding, whose): ark.Planned(keys, 1.25 * keys, 10.0 * keys)
        for encoding, whose, keys in (
            ("slots", "ConvFHE", 24),
            ("slots", "ARK", 8),
            ("slots", "LowMem", 4),
            ("slots", "optimal", 3),
            ("coefficients", "ConvFHE", 16),
            ("coefficients", "ARK", 15),
        )
    }
    ours = {
        setting: {"ark-memory": (50.0, 81.0, 51.0), "optimal": (99.0, -25.0, 99.0)} for setting in ark.TABLE_1
    }
    drawn = []
    for name in ("first", "second"):
        figures = [tmp_path / f"{name}-{number}.svg" for number in (7, 8)]
        pictures.draw_figure_7(layers, figures[0])
        pictures.draw_figure_8(ark.shares(), ours, figures[1])
        drawn.append([path.read_text() for path in figures])
    assert drawn[0] == drawn[1]
    for words in ("11.7", "LowMem", "optimal"):
        assert words in drawn[0][0]
    for words in ("3-20-3", "paper, MP, CRot1", "81"):
        assert words in drawn[0][1]


def test_every_program_of_the_lists_has_its_table() -> None:
    names = Template(PAGE.read_text()).get_identifiers()
    assert {name if name[0].isalpha() else f"_{name}" for name in map(_key, workloads())} <= set(names)


def _key(name: str) -> str:
    return name.replace("-", "_").lower()


def test_pictures_are_drawn_again_from_the_page() -> None:
    text = PAGE.parents[3].joinpath("docs/reproduction/keys.md").read_text()
    layers = printed.figure_7(text)
    assert {name: layer.keys for name, layer in layers.items()}["slots", "LowMem"] == 4
    assert [encoding for encoding, _ in layers] == ["slots"] * 4 + ["coefficients"] * 2
    shares = printed.figure_8(text)
    assert set(shares) == set(ark.TABLE_1)
    ark.check_figure_8(shares)
    assert all(set(share) == {"ark-memory", "ark-time", "optimal"} for share in shares.values())
    with pytest.raises(SystemExit, match="no table"):
        printed.figure_7("# A page\n")


def test_the_page_has_the_text_of_its_template() -> None:
    """The whole command runs for too long to be a test, so a change of the text is made in both files."""
    page = " ".join(PAGE.parents[3].joinpath("docs/reproduction/keys.md").read_text().split())
    at = 0
    for part in re.split(r"\$\w+|\$\{\w+\}", PAGE.read_text()):
        text = " ".join(part.split())
        assert text in page[at:], f"docs/reproduction/keys.md does not have: {text}"
        at = page.index(text, at) + len(text)


def test_the_page_has_ark_by_its_text() -> None:
    """Counts of keys depend on no measured weight, so this part is the command's output."""
    _, begin, rest = PAGE.read_text().partition("## ARK by its text\n")
    part = Template(begin + rest.partition("## ARK: tables")[0]).substitute(ark.by_the_text())
    assert wrapped(part) in PAGE.parents[3].joinpath("docs/reproduction/keys.md").read_text()


def test_text_of_ark_decides_how_many_keys_there_are() -> None:
    rows = {(row[0], row[2]): row[3:] for row in _rows(str(ark.by_the_text()["ark_text"]))}
    keys = {name: [int(cell.split("/")[0]) for cell in cells] for name, cells in rows.items()}
    assert keys["2 to 128", "ark-memory"] == [7, 7, 4, 4]
    assert keys["1 to 16384", "ark-memory"] == [15, 15, 8, 8]
    assert keys["rot1", "ark-memory"] == [9, 9, 9, 9]
    assert keys["3-20-1", "ark-memory"] == [91, 108, 91, 104]
    assert keys["exp2", "ark-time"] == [106, 106, 74, 76]


def _rows(table: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]


def test_the_page_has_the_seconds_that_its_weights_predict() -> None:
    """Of the strategies that have one reading, on the list that is planned fastest."""
    text = study.PAGE.read_text()
    part = text[text.index("### 3-20-1\n") :]
    rows = [line.strip("| ").split(" | ") for line in part[: part.index("\n### ")].splitlines()]
    listed = {row[0]: row[3] for row in rows if len(row) > 3}
    model, workload = CostModel(study.WEIGHTS), workloads()["3-20-1"]
    for name in ("all-required", "power-of-two", "signed-power-of-two", "kds"):
        predicted = STRATEGIES[name].plan(workload, model).seconds(model)
        assert f"{predicted:.1f}" == listed[name]
