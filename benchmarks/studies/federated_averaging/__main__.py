"""Time and bytes of a round of federated averaging: `python -m studies.federated_averaging`.

The updates are those of Chem's paper, section 4.5: 30 clients, of which 10 to 50 % take part in a round, CNN
and MLP, images spread at random ("iid") or by label. Every way averages the same updates, and its result is
compared with the average in double precision. The ways take turns in every run. Clients train with the
paper's rate.

Clients, server and opening are timed separately: encoding, encryption and serialisation; parsing, addition
and serialisation; parsing, decryption and decoding. The ways with a ciphertext for each value run on a sample
of the values, and the results are extrapolated; with --whole they run on all.

The ways whose names begin with "Flower" are Flower's own mods and strategies, with every message serialised:
plain FedAvg, Keywright's two, and SecAgg+. A second table has each of their exchanges.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import keywright as kw
from harness.console import Console
from harness.folders import BUILD, HERE, record_folder
from harness.pages.table import heading, markdown, quotients, spread
from harness.programs.schedule import pin
from harness.programs.targets import Unavailable

from studies.federated_averaging.bandwidth import bandwidth
from studies.federated_averaging.flower import (
    Federation,
    FlowerPlain,
    FlowerSecAgg,
    FlowerShared,
    FlowerThreshold,
    quiet,
)
from studies.federated_averaging.plots import draw
from studies.federated_averaging.updates import CLIENTS, Model, trained
from studies.federated_averaging.ways import OneByOne, Plain, Shared, TenSeal, Way, flat

CHEM_BITS = (8, 16, 24)
STAGES = ("client", "server", "open")
SIZES = ("up_bytes", "down_bytes")


WAYS: dict[str, Callable[[int], list[Way]]] = {
    "plain": lambda clients: [Plain(), FlowerPlain(clients)],
    "shared": lambda clients: [Shared(clients), FlowerShared(clients)],
    "threshold": lambda clients: [FlowerThreshold(clients)],
    "secagg": lambda clients: [FlowerSecAgg(clients, n) for n in sorted({clients, min(clients, 3)})[::-1]],
}
"""Made for each number of clients in a round: SecAgg+ with all of them, and with as few as it allows."""
PEERS = ("tenseal", "chem")
"""Made once."""


def measure(
    updates: list[Model], setting: dict[str, Any], used: list[Way], runs: int, *, warm: bool
) -> Iterator[dict[str, Any]]:
    """Every way in turn, in every run; unless all is warm, a run before them is not recorded."""
    for run in range(0 if warm else -1, runs):
        for way in used:
            round_of_way = way.round(updates)
            if run >= 0:
                yield {
                    **setting,
                    "run": run,
                    "way": way.name,
                    "extrapolated": way.extrapolated,
                    "update_bytes": round_of_way.update_bytes,
                    "sum_bytes": round_of_way.sum_bytes,
                    "exchanges": [asdict(exchange) for exchange in round_of_way.exchanges],
                    **before_rounds(way),
                    **{
                        f"{stage}_{clock}_s": value
                        for stage, seconds in (
                            ("client", round_of_way.client),
                            ("server", [round_of_way.server]),
                            ("open", [round_of_way.open]),
                        )
                        for clock, value in (
                            ("wall", statistics.median(s.wall for s in seconds)),
                            ("cpu", statistics.median(s.cpu for s in seconds)),
                        )
                    },
                }


def before_rounds(way: Way) -> dict[str, Any]:
    """What a way sets up once."""
    if not isinstance(way, Federation) or not way.setup:
        return {}
    setup = [asdict(exchange) for exchange in way.setup]
    return {"setup": setup, "setup_server_cpu_s": way.setup_server.cpu}


def table(rows: list[dict[str, Any]], moved: dict[str, Any]) -> list[str]:
    """The medians in Markdown."""
    groups: dict[tuple[str, str, int], dict[str, list[dict[str, Any]]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for row in rows:
        groups[row["model"], row["partition"], row["clients"]][row["way"]].append(row)
    lines = []
    for (model, kind, clients), group in groups.items():
        lines += [f"## {model}, {kind}, {clients} of {CLIENTS} clients", ""]
        cells_of = []
        for way, runs in group.items():
            cells = [spread([1e3 * run[f"{stage}_cpu_s"] for run in runs]) for stage in STAGES]
            sizes = [f"{runs[0][size]:.0f}" for size in ("update_bytes", "sum_bytes")]
            name = f"{way} (extrapolated)" if runs[0]["extrapolated"] else way
            cells_of.append([name, *cells, *sizes])
        heads = ["way", "client, ms", "server, ms", "opening, ms", "bytes of an update", "bytes of the sum"]
        lines += markdown(heads, cells_of, aligned=False)
        for part in (ratios(group), by_exchange(group)):
            lines += ["", *part] if part else []
        lines.append("")
    if not moved:
        return lines
    speeds = "; ".join(f"{name} {spread(s)} GB/s" for name, s in moved["GB_s"].items())
    size = f"{moved['inputs']} updates of {moved['bytes'] / 1e6:.1f} MB"
    lines += ["## Addition on the server, read and written", "", f"* {size}: {speeds}"]
    lines += [f"* of the faster of copy and triad in the same turn: {spread(moved['share_of_faster'])}"]
    return lines


def by_exchange(measurements: dict[str, list[dict[str, Any]]]) -> list[str]:
    """What a client does and sends in every exchange, set-up apart."""
    heads = ["way", "exchange", "clients asked", "a client, ms", "bytes up", "bytes down", "server, ms"]
    rows = []
    for way, runs in measurements.items():
        setup = runs[0].get("setup", [])
        for shown, label in (([setup], "set-up, "), ([run["exchanges"] for run in runs], "")):
            for turns in zip(*shown, strict=True):
                name, clients = turns[0]["name"], turns[0]["clients"]
                cells = [way, f"{label}{name}", f"{clients}", spread([1e3 * t["cpu_s"] for t in turns])]
                cells += [f"{statistics.median(t[size] for t in turns):.0f}" for size in SIZES]
                server = [runs[0]["setup_server_cpu_s"]] if label else [run["server_cpu_s"] for run in runs]
                cells.append(spread([1e3 * s for s in server]) if name == "all" else "")
                rows.append(cells)
    return markdown(heads, rows, aligned=False) if rows else []


def ratios(rows: dict[str, list[dict[str, Any]]]) -> list[str]:
    """What is asked for, run by run."""

    def per(way: str, what: str) -> list[float]:
        return [run[what] for run in rows[way]]

    def line(text: str, above: list[float], below: list[float]) -> str:
        return f"* {text}: {spread(quotients(above, below))}"

    lines, ours, peer = [], Shared.name, "TenSEAL, a vector a layer"
    if peer in rows and ours in rows:
        lines = [
            line(f"{peer} / {ours}, client", per(peer, "client_cpu_s"), per(ours, "client_cpu_s")),
            line(
                f"{peer} / {ours}, bytes of an update", per(peer, "update_bytes"), per(ours, "update_bytes")
            ),
        ]
    plain = "Keywright, a ciphertext a value"
    for chem in (f"Chem, {bits} bits" for bits in CHEM_BITS):
        if chem in rows:
            above, below = per(chem, "client_cpu_s"), per(plain, "client_cpu_s")
            lines.append(line(f"{chem} / {plain}, client", above, below))
    return lines


def main() -> None:
    """Measure, check, write."""
    parser = argparse.ArgumentParser(prog="python -m studies.federated_averaging", description=__doc__)
    parser.add_argument("--mnist", required=True, help="folder of MNIST's four files")
    parser.add_argument("--model", nargs="+", choices=["cnn", "mlp"], default=["cnn", "mlp"])
    parser.add_argument("--partition", nargs="+", choices=["iid", "labels"], default=["iid", "labels"])
    parser.add_argument("--fraction", nargs="+", type=float, default=[0.1, 0.5])
    parser.add_argument("--ways", nargs="+", choices=[*WAYS, *PEERS], help="default: all, and memory speed")
    parser.add_argument("--whole", action="store_true", help="all values with a ciphertext each: minutes")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--images", type=int, default=200, help="that a client trains on before it sends")
    parser.add_argument("--build", type=Path, default=BUILD, help="folder of the peers' builds")
    parser.add_argument("--out", type=Path, help="folder of the record (default: record/DATE-federated)")
    options = parser.parse_args()
    chosen = options.ways or [*WAYS, *PEERS]
    folder = record_folder(options.out, "federated")
    mnist = str(Path(options.mnist).resolve())
    os.chdir(HERE)
    console = Console()
    pin(1)
    kw.set_threads(1)
    quiet()
    peers: list[Way] = []
    try:
        if "tenseal" in chosen:
            peers += [TenSeal(console, options.build.resolve(), packed=p) for p in (True, False)]
    except Unavailable as unavailable:
        raise SystemExit(f"tenseal: {unavailable}") from unavailable
    if "chem" in chosen:
        peers += [OneByOne(bits, whole=options.whole) for bits in (None, *CHEM_BITS)]
    rows: list[dict[str, Any]] = []
    with (folder / "raw.jsonl").open("w") as raw:
        for model in options.model:
            for kind in options.partition:
                for fraction in options.fraction:
                    updates = trained(mnist, model, kind, fraction, options.images)
                    values = flat(updates[0]).size
                    setting = {"model": model, "partition": kind, "clients": len(updates), "values": values}
                    used = [way for name in WAYS if name in chosen for way in WAYS[name](len(updates))]
                    used += peers
                    for row in measure(updates, setting, used, options.runs, warm=options.whole):
                        rows.append(row)
                        print(json.dumps(row), file=raw, flush=True)
                    console.status(f"{model}, {kind}, {len(updates)} clients")
        moved = {} if options.ways else bandwidth(max(options.runs, 5))
        if moved:
            print(json.dumps(moved), file=raw)
    text = "\n".join(
        [
            *heading(
                "Federated averaging",
                f"one thread; CPU time, median (smallest to largest) of {options.runs} runs",
                f"load of the machine {os.getloadavg()[0]:.1f}",
                f"a client has trained on {options.images} images; client: the median of those of a round",
                f"threshold: {CLIENTS} clients make the key, two thirds of those of a round decrypt",
                "SecAgg+: all clients of the round share keys, or 3; two thirds of the shares unmask",
            ),
            *table(rows, moved),
            "",
        ]
    )
    (folder / "table.md").write_text(text)
    draw(rows, folder / "plot.png")
    print(text)


if __name__ == "__main__":
    main()
