"""`python -m studies.cached_encryption.figures`: figures 1 and 2 of Chem's paper, the attack.

Figure 1 is the time to fill the cache, for 16 to 128 bits, CKKS and BFV (a Rust program, built by cargo).
Figure 2 is the time to encrypt the three data sets one value per ciphertext, with Chem and plainly, on a
random sample of their values. The third plot has the additions that the digits of a value need, by radix, in
the worst case and on the data. The attack learns from encryptions of one message and decides 200 challenges.
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import shutil
import statistics
from collections import defaultdict
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import keywright as kw
import numpy as np
from harness.folders import HERE, record_folder
from harness.measurement.clock import timed
from harness.pages.plot import new_figure
from harness.pages.table import heading, markdown, quotients, spread
from harness.programs.schedule import pin
from harness.programs.suite import output
from keywright.insecure import ChemDistinguisher, ChemEncryptor

from studies.cached_encryption.radix import additions, worst_case
from studies.cached_encryption.tensors import Tensors, cars, mnist, speech

RADIXES = (2, 3, 4, 5, 6, 8, 10, 16, 32, 64, 128, 256)
ROUNDS = 5
BATCH = 200
"""Values of a data set in one round."""
ACKNOWLEDGEMENT = "Chem does not hide messages"
SCHEMES = ("CKKS", "BFV")


def caches() -> list[dict[str, Any]]:
    """Figure 1, measured by the Rust program.

    Raises:
        SystemExit: there is no cargo, or the program fails.
    """
    if shutil.which("cargo") is None:
        raise SystemExit("no Rust toolchain: `cargo` is not on the path")
    command = ["cargo", "run", "--quiet", "--release", "--locked"]
    command += ["-p", "keywright-pool", "--example", "cache"]
    printed = output(command, name="the measurement of caches", cwd=HERE.parent)
    return [json.loads(line) for line in printed.splitlines()]


class Ckks:
    """CKKS: a sample m of b bits is the number m / 2^b."""

    name = "CKKS"

    def __init__(self) -> None:
        parameters = kw.Parameters.from_bits(13, [60, 40, 40], [60], 40)
        secret = kw.SecretKey.generate(parameters)
        self.public = kw.KeyGenerator(secret).public_key()
        self.encryptor, self.decryptor = kw.Encryptor(self.public), kw.Decryptor(secret)

    def chem(self, bits: int) -> Callable[[list[int]], list[Any]]:
        """Chem's encryption of samples."""
        return ChemEncryptor(self.public, bits, acknowledge=ACKNOWLEDGEMENT, unit=2.0**-bits).encrypt

    def plain(self, samples: list[int], bits: int) -> list[Any]:
        """Plain encryption, one value per ciphertext."""
        return [self.encryptor.encrypt([sample * 2.0**-bits], 1) for sample in samples]

    def right(self, ciphertexts: Any, sample: int, bits: int) -> bool:
        """Whether a ciphertext decrypts to its sample, within its bound and the arithmetic of decoding."""
        error = np.abs(self.decryptor.decrypt(ciphertexts) - sample * 2.0**-bits).max()
        return bool(error <= ciphertexts.error_bound + 1e-12)


class Bfv:
    """BFV: samples are integers modulo 65537, in every slot."""

    name = "BFV"

    def __init__(self) -> None:
        parameters = kw.bfv.Parameters.from_bits(13, [60, 40, 40], [60], 65_537)
        secret = kw.SecretKey.generate(parameters)
        self.public = kw.KeyGenerator(secret).public_key()
        self.encryptor, self.decryptor = kw.bfv.Encryptor(self.public), kw.bfv.Decryptor(secret)

    def chem(self, bits: int) -> Callable[[list[int]], list[Any]]:
        """Chem's encryption of samples."""
        return ChemEncryptor(self.public, bits, acknowledge=ACKNOWLEDGEMENT).encrypt_integers

    def plain(self, samples: list[int], bits: int) -> list[Any]:
        """Plain encryption, one value per ciphertext."""
        return [self.encryptor.encrypt(sample) for sample in samples]

    def right(self, ciphertexts: Any, sample: int, bits: int) -> bool:
        """Whether a ciphertext decrypts to its sample."""
        return bool(((self.decryptor.decrypt(ciphertexts) - sample) % 65_537 == 0).all())


def encryptions(data: list[Tensors]) -> list[dict[str, Any]]:
    """Figure 2: rounds that encrypt random values of every data set with Chem and plainly, checked."""
    rng, decrypted = np.random.default_rng(3), []
    for scheme in (Ckks(), Bfv()):
        for tensors in data:
            chem = scheme.chem(tensors.bits)
            for turn in range(-1, ROUNDS):
                values = rng.choice(tensors.samples.ravel(), BATCH).tolist()
                sums, chem_seconds = timed(chem, values)
                plain, plain_seconds = timed(scheme.plain, values, tensors.bits)
                for ciphertexts in (sums, plain):
                    for ciphertext, value in list(zip(ciphertexts, values, strict=True))[::10]:
                        if not scheme.right(ciphertext, value, tensors.bits):
                            raise SystemExit(f"{scheme.name}, {tensors.name}: a result is wrong")
                for way, seconds in (("Chem", chem_seconds), ("plain", plain_seconds)):
                    record = {"data": tensors.name, "values": BATCH, "round": turn, "bits": tensors.bits}
                    record |= {
                        "scheme": scheme.name,
                        "way": way,
                        "cpu_s": seconds.cpu,
                        "wall_s": seconds.wall,
                    }
                    if turn >= 0:
                        decrypted.append(record)
    return decrypted


def attacks() -> list[dict[str, Any]]:
    """Plays the chosen-plaintext game against Chem: 200 challenges for each number of bits."""
    parameters = kw.Parameters.from_bits(13, [60, 40, 40], [60], 40)
    public = kw.KeyGenerator(kw.SecretKey.generate(parameters)).public_key()
    attacks = []
    for bits in (16, 32, 64, 128):
        chem = ChemEncryptor(public, bits, acknowledge=ACKNOWLEDGEMENT, unit=2.0**-40 if bits == 128 else 1.0)
        known, queries = timed(chem.encrypt, [1000] * (bits + 32))
        attacker, learning = timed(ChemDistinguisher, known)
        coins = [secrets.randbits(1) for _ in range(200)]
        challenges = chem.encrypt([1000 + coin for coin in coins])
        answers, deciding = timed(lambda one, many: [one.recognises(c) for c in many], attacker, challenges)
        attacks.append(
            {
                "bits": bits,
                "challenges": len(coins),
                "right": sum(answer != bool(coin) for answer, coin in zip(answers, coins, strict=True)),
                "queries": len(known),
                "queries_s": queries.cpu,
                "learning_s": learning.cpu,
                "deciding_s": deciding.cpu,
            }
        )
    return attacks


def by_radix(data: list[Tensors]) -> list[dict[str, Any]]:
    """Additions for the digits of a value."""
    return [
        {
            "data": tensors.name,
            "bits": tensors.bits,
            "radix": radix,
            "worst": worst_case(radix, tensors.bits),
            "mean": additions(tensors.samples.ravel(), radix),
        }
        for tensors in data
        for radix in RADIXES
        if radix <= 1 << tensors.bits
    ]


def tables(
    data: list[Tensors],
    filled: list[dict[str, Any]],
    encrypted: list[dict[str, Any]],
    radixes: list[dict[str, Any]],
) -> list[str]:
    """Everything in Markdown."""
    seconds: dict[tuple[str, int], list[float]] = defaultdict(list)
    for run in filled:
        seconds[run["scheme"], run["bits"]].append(run["seconds"])
    sizes = {(run["scheme"], run["bits"]): (run["entries"], run["bytes"]) for run in filled}
    rows: list[list[object]] = []
    for (scheme, bits), runs in seconds.items():
        entries, size = sizes[scheme, bits]
        rows.append([scheme, bits, entries, spread(runs), f"{size / 1e6:.0f}"])
    lines = ["## Figure 1: filling the cache", ""]
    lines += markdown(["scheme", "bits", "entries", "seconds", "MB"], rows, aligned=False)
    lines += ["", "## Figure 2: Chem beside plain encryption", ""]
    rows = []
    for scheme, tensors in product(SCHEMES, data):
        own = [run for run in encrypted if (run["scheme"], run["data"]) == (scheme, tensors.name)]
        ways = {
            way: [1e3 * run["cpu_s"] / run["values"] for run in own if run["way"] == way]
            for way in ("Chem", "plain")
        }
        rows.append([scheme, tensors.name, tensors.bits, f"{100 * tensors.nonzero:.2f} %"])
        rows[-1] += map(spread, (ways["Chem"], ways["plain"], quotients(ways["Chem"], ways["plain"])))
    heads = [
        "scheme",
        "data",
        "bits",
        "not zero",
        "Chem, ms per value",
        "plain, ms per value",
        "Chem / plain",
    ]
    lines += markdown(heads, rows, aligned=False)
    lines += ["", "## Additions for the digits of a value, by radix", ""]
    lines += ["| radix | " + " | ".join(f"{t.name}: worst | mean" for t in data) + " |"]
    lines += ["|---" * (1 + 2 * len(data)) + "|"]
    for radix in RADIXES:
        cells = []
        for tensors in data:
            own = [run for run in radixes if run["data"] == tensors.name and run["radix"] == radix]
            cells += [f"{run['worst']} | {run['mean']:.2f}" for run in own] or ["- | -"]
        lines.append(f"| {radix} | " + " | ".join(cells) + " |")
    return lines


def attack_table(attacked: list[dict[str, Any]]) -> list[str]:
    """The attack in Markdown."""
    heads = [
        "bits",
        "chosen plaintexts",
        "right answers",
        "their encryption, s",
        "learning, s",
        "deciding all, s",
    ]
    rows = []
    for run in attacked:
        times = [f"{run[f'{part}_s']:.3g}" for part in ("queries", "learning", "deciding")]
        rows.append([run["bits"], run["queries"], f"{run['right']} of {run['challenges']}", *times])
    return ["", "## The attack, N = 2^13", "", *markdown(heads, rows, aligned=False)]


def draw(
    data: list[Tensors],
    filled: list[dict[str, Any]],
    encrypted: list[dict[str, Any]],
    radixes: list[dict[str, Any]],
    path: Path,
) -> None:
    """Write the three plots into one picture."""
    figure = new_figure(13, 4)
    first, second, third = figure.subplots(1, 3)
    for scheme in SCHEMES:
        runs: dict[int, list[float]] = defaultdict(list)
        for run in filled:
            if run["scheme"] == scheme:
                runs[run["bits"]].append(run["seconds"])
        first.plot(list(runs), [statistics.median(r) for r in runs.values()], "o-", label=scheme)
    first.set(title="Filling Chem's cache", xlabel="bits", ylabel="seconds", ylim=0)
    first.legend()
    places = np.arange(len(data))
    for shift, way in ((-0.2, "plain"), (0.2, "Chem")):
        medians = [
            statistics.median(
                1e3 * run["cpu_s"] / run["values"]
                for run in encrypted
                if (run["scheme"], run["data"], run["way"]) == ("CKKS", tensors.name, way)
            )
            for tensors in data
        ]
        second.bar(places + shift, medians, 0.4, label=way)
    second.set_xticks(places, [tensors.name for tensors in data])
    second.set(title="One value per ciphertext, CKKS", ylabel="CPU milliseconds per value")
    second.legend()
    for tensors in data:
        own = [run for run in radixes if run["data"] == tensors.name]
        (line,) = third.plot(
            [r["radix"] for r in own], [r["mean"] for r in own], "o-", label=f"{tensors.name}, mean"
        )
        third.plot(
            [r["radix"] for r in own],
            [r["worst"] for r in own],
            ":",
            color=line.get_color(),
            label=f"{tensors.bits} bits, worst",
        )
    third.set_xscale("log", base=2)
    third.set_yscale("log")
    third.set(title="Additions for the digits of a value", xlabel="radix")
    third.legend(fontsize="small")
    figure.savefig(path, dpi=110)


def main() -> None:
    """Measure, check, write."""
    parser = argparse.ArgumentParser(prog="python -m studies.cached_encryption.figures", description=__doc__)
    parser.add_argument("--mnist", type=Path, required=True, help="folder of MNIST's files")
    parser.add_argument("--out", type=Path, help="folder of the record (default: record/DATE-chem)")
    options = parser.parse_args()
    folder = record_folder(options.out, "chem")
    data = [mnist(options.mnist, 1000), cars(3), speech(5)]
    os.chdir(HERE)
    pin(1)
    kw.set_threads(1)
    filled, encrypted, radixes, attacked = caches(), encryptions(data), by_radix(data), attacks()
    with (folder / "raw.jsonl").open("w") as raw:
        for run in [*filled, *encrypted, *radixes, *attacked]:
            print(json.dumps(run), file=raw)
    drawn = ", ".join(tensors.name for tensors in data if tensors.drawn)
    rounds = f"median (smallest to largest) of {ROUNDS} rounds; load of the machine {os.getloadavg()[0]:.1f}"
    text = "\n".join(
        [
            *heading(
                "Figures of Chem's paper",
                f"values made here, of the shape and share of zeros of the data sets: {drawn}",
                f"N = 2^13, 60-40-40-60, one thread, radix 2, CPU time in figure 2; {rounds}",
            ),
            *tables(data, filled, encrypted, radixes),
            *attack_table(attacked),
            "",
        ]
    )
    (folder / "table.md").write_text(text)
    draw(data, filled, encrypted, radixes, folder / "plot.png")
    print(text)


if __name__ == "__main__":
    main()
