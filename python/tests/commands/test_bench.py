"""`keywright bench`."""

from __future__ import annotations

import json

import keywright as kw
import pytest
from keywright._core import bench_bootstrap
from keywright.cli import main
from tests.commands.printed import fails, lines


def test_bench(capsys: pytest.CaptureFixture[str]) -> None:
    threads = kw.threads()
    arguments = ["--set", "quick", "--runs", "1", "--threads", "1"]
    try:
        assert main(["bench", "ntt", "rotate", *arguments, "--json"]) == 0
        rows = lines(capsys)
        assert main(["bench", "ntt", *arguments]) == 0
        assert "of the limit" in capsys.readouterr().out
    finally:
        kw.set_threads(threads)
    assert {row["work"] for row in rows} == {"ntt", "rotate"}
    for row in rows:
        assert row["checked"]
        assert row["threads"] == 1
        assert 0 < row["min_s"] <= row["median_s"]
    assert "use one of ntt" in fails(capsys, "bench", "walk")
    assert "runs" in fails(capsys, "bench", "--runs", "0")


def test_bench_of_bootstrapping(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["bench", "bootstrap", "--preset", "quick", "--runs", "2"]
    assert main([*command, "--json"]) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    [row] = [json.loads(line) for line in printed.out.splitlines()]
    assert (row["work"], row["preset"], row["log_n"], row["runs"]) == ("bootstrap", "quick", 11, 2)
    assert row["checked"]
    assert row["levels_left"] == 3
    assert row["vectors"] == 3
    assert abs(row["mean_bits"] - row["predicted_mean_bits"]) < 1
    assert abs(row["worst_bits"] - row["predicted_worst_bits"]) < 1
    assert row["bound_bits"] < row["result_worst_bits"]
    assert row["key_bytes"] == row["bytes"] > 1e6
    assert row["limit_s"] is None
    stages = [row[f"{stage}_s"] for stage in ("slots_to_coeffs", "mod_raise", "coeffs_to_slots", "eval_mod")]
    assert all(seconds > 0 for seconds in [row["keygen_s"], row["precompute_s"], *stages])
    assert row["peak_rss_bytes"] > row["key_bytes"]
    assert main(command) == 0
    printed = capsys.readouterr()
    assert "worst bits" in printed.out
    assert "coeffs_to_slots" in printed.out
    assert printed.err.split() == ["parameters", "keys", "matrices", "bootstraps"]
    assert "--preset" in fails(capsys, "bench", "bootstrap")
    assert "--preset" in fails(capsys, "bench", "ntt", "--preset", "quick")
    assert "runs" in fails(capsys, *command[:-1], "0")
    assert "at least 2" in fails(capsys, *command, "--vectors", "1")
    assert "--vectors" in fails(capsys, "bench", "ntt", "--vectors", "3")


def test_bench_of_bootstrapping_stops_when_told(capsys: pytest.CaptureFixture[str]) -> None:
    class Stop(Exception):
        pass

    phases: list[str] = []

    def stop(phase: str, done: int, total: int) -> None:
        phases.append(phase)
        if phase == "keys":
            raise Stop

    with pytest.raises(Stop):
        bench_bootstrap(print, preset="quick", progress=stop)
    assert phases == ["parameters", "keys"]
    assert capsys.readouterr().out == ""
    with pytest.raises(kw.errors.ParameterError, match="quick"):
        bench_bootstrap(print, preset="slow")
