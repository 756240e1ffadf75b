import re
from pathlib import Path

import numpy as np
import onnx
import pytest
from harness.folders import HERE
from onnx import TensorProto, helper, numpy_helper
from studies.exporters.__main__ import EXPORTERS, FIXTURES, IMPORTS, cell, tables
from studies.exporters.watching import WrongError, watch

FIXED = HERE.parent / "python" / "tests" / "compiler" / "front_ends" / "exported"


@pytest.fixture
def squares(tmp_path: Path) -> Path:
    """Write a model of (x W) squared."""
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["h"]), helper.make_node("Mul", ["h", "h"], ["y"])],
        "squares",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 2])],
        [numpy_helper.from_array(np.arange(6, dtype=np.float32).reshape(3, 2), "w")],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), tmp_path / "m.onnx")
    return tmp_path / "m.onnx"


def test_outputs_are_compared_with_the_frameworks(squares: Path) -> None:
    samples = np.random.default_rng(1).normal(size=(20, 3)).astype(np.float32)
    outputs = (samples @ np.arange(6, dtype=np.float32).reshape(3, 2)) ** 2
    result = watch(squares, samples, outputs, 10, compiled=True)
    assert result.difference is not None
    assert result.difference < 1e-6
    assert result.depth == 2
    outputs[7, 1] += 1e-3 * np.abs(outputs).max()
    with pytest.raises(WrongError, match=r"off by 0\.001 of the largest"):
        watch(squares, samples, outputs, 10, compiled=False)


def test_a_cell_has_opsets_levels_and_changes() -> None:
    first: dict[str, object] = {"difference": 0.0, "depth": 5, "change": 0.02}
    last = first | {"change": 0.0312}
    results: dict[int, dict[str, object]] = {
        13: first,
        14: {"difference": 0.0},
        15: last,
        16: {"refused": "no"},
        17: {"not_exported": "no"},
    }
    assert cell(results) == "13 to 15: 5 levels, 3.1%; 16 refused; 17 not exported"
    assert cell({13: {"difference": 0.0, "depth": 1, "change": 1e-7}}) == "13: 1 level, exact"
    assert cell(None) == ""


def test_a_reason_is_said_once() -> None:
    reason = {"refused": "node 'a': operator Loop is not supported; node 'b': more"}
    about = {
        "versions": {"some": "1.0"},
        "opsets": [13],
        "cases": {"GRU": {13: reason}, "LSTM": {13: reason}},
    }
    assert tables({"tf2onnx": about})[-1] == "* GRU (tf2onnx), LSTM (tf2onnx): operator Loop is not supported"


def test_each_framework_writes_its_cases() -> None:
    folder = HERE / "studies" / "exporters" / "writing"
    assert EXPORTERS.keys() == IMPORTS.keys()
    for framework, exporters in EXPORTERS.items():
        source = (folder / f"{framework}.py").read_text()
        assert all(f'write("{exporter}"' in source for exporter in exporters)


def test_the_packages_tests_have_the_files_that_are_kept() -> None:
    names = {name.replace(",", "") for name in FIXTURES}
    assert {path.stem for path in FIXED.glob("*.onnx")} == names


def rows(record: str, first: str) -> list[str]:
    """The rows of a record's table whose first column has this heading."""
    lines = (HERE / "record" / record / "table.md").read_text().splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith(f"| {first} |"))
    return lines[start : lines.index("", start)]


@pytest.mark.parametrize(
    ("record", "first", "count"),
    [("2026-11-23-exporters", "operator", 30), ("2026-11-29-exporters", "estimator", 20)],
)
def test_the_page_has_the_rows_of_the_record(record: str, first: str, count: int) -> None:
    page = (HERE.parent / "docs" / "reproduction" / "models.md").read_text()
    assert len(rows(record, first)) > count
    assert "\n".join(rows(record, first)).replace("%", " %") in page  # the page has a space before the sign


def test_the_page_has_the_reasons_of_the_last_record() -> None:
    page = (HERE.parent / "docs" / "reproduction" / "models.md").read_text()
    record = (HERE / "record" / "2026-11-29-exporters" / "table.md").read_text()
    for reason in re.findall(r"^\* .*$", record, re.MULTILINE):
        assert reason in " ".join(page.split())  # the page is wrapped
