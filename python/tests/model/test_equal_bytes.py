"""Equal models compile to equal bytes, in any process."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import keywright as kw
import numpy as np
import pytest
from keywright import compiler
from tests.model.test_edges import linear

SCRIPT = """
import sys
from pathlib import Path

import keywright as kw
import numpy as np
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

x = np.random.default_rng(0).normal(size=(60, 3))
y = x[:, 0] * x[:, 1] > 0
digits = (Path(kw.__file__).parent / "data/digits.onnx").read_bytes()
models = {
    "digits": kw.compile(digits),
    "thin": kw.compile(digits, client="thin"),
    "kernel": kw.compile(SVC(kernel="linear").fit(x, y), x),
    "trees": kw.compile(GradientBoostingClassifier(n_estimators=2, max_depth=2, random_state=0).fit(x, y), x),
    "steps": kw.compile(make_pipeline(StandardScaler(), LogisticRegression()).fit(x, y), x),
}
for name, model in models.items():
    model.save(Path(sys.argv[1]) / name)
"""
"""Of each way through the compiler: ONNX, thin clients, steps of the client before and behind, trees."""


def compiled(folder: Path, seed: str) -> dict[str, bytes]:
    """Compile in a process that orders sets by a seed, and return its files."""
    folder.mkdir()
    environment = os.environ | {"PYTHONHASHSEED": seed, "SOURCE_DATE_EPOCH": "1700000000"}
    subprocess.run([sys.executable, "-W", "ignore", "-c", SCRIPT, str(folder)], check=True, env=environment)
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_models_compile_to_equal_bytes_in_any_process(tmp_path: Path) -> None:
    first, second = (compiled(tmp_path / seed, seed) for seed in ("1", "2"))
    assert first.keys() == second.keys()
    assert [name for name, data in first.items() if data != second[name]] == []
    assert compiler.load(tmp_path / "1/digits/program.kwp").created == 1_700_000_000_000


def test_a_program_is_written_alike_at_any_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = kw.compile(linear(np.eye(3))).program
    assert program.created > 1_700_000_000_000
    compiler.save(program, tmp_path / "now.kwp")
    monkeypatch.setattr(time, "time", lambda: 2e9)
    compiler.save(program, tmp_path / "later.kwp")
    assert (tmp_path / "now.kwp").read_bytes() == (tmp_path / "later.kwp").read_bytes()
