"""`python -m studies.cached_encryption.on_tenseal`: Chem on TenSEAL and on Keywright, compared with plain
encryption.

Figures 2 to 4 of Chem's paper with the base that the paper has: Chem's additions and plain encryptions are
calls of the same library, one value per ciphertext. Inputs of inference are MNIST, and stand-ins for the two
other data sets; updates are those of the federated networks at 8, 16 and 24 bits. The libraries take turns in
every round, in separate processes, and results are decrypted and compared.
"""

from __future__ import annotations

import argparse
import json
import os
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import keywright as kw
import numpy as np
from harness.console import Console
from harness.folders import BUILD, HERE, record_folder
from harness.measurement.clock import timed
from harness.pages.table import heading, markdown, spread
from harness.programs.process import PeerProcess
from harness.programs.schedule import pin
from harness.programs.targets import Unavailable
from keywright.insecure import ChemEncryptor
from numpy.typing import NDArray

from studies.cached_encryption.tensors import cars, mnist, speech
from studies.federated_averaging.updates import trained
from studies.federated_averaging.ways import BOUND, flat

UPDATE_BITS = (8, 16, 24)
ALLOWED = 2.0**-20
"""TenSEAL tells no bound. Its errors are near 2^-28 for one ciphertext; a sum here has at most 48 of them."""


@dataclass(frozen=True)
class Case:
    """The bits of messages, and the number that a message of 1 represents."""

    name: str
    bits: int
    unit: float
    messages: NDArray[np.int64]


def cases(folder: Path, images: int) -> Iterator[Case]:
    """Inputs of inference, then updates of the two networks."""
    for tensors in (mnist(folder, 1000), cars(3), speech(5)):
        yield Case(tensors.name, tensors.bits, 2.0**-tensors.bits, tensors.samples.ravel())
    for model in ("cnn", "mlp"):
        values = np.concatenate([flat(one) for one in trained(str(folder), model, "iid", 0.5, images)])
        for bits in UPDATE_BITS:
            # Chem's messages are not negative: a value is moved up by the bound.
            unit = 2 * BOUND / (2**bits - 1)
            messages = np.rint((np.clip(values, -BOUND, BOUND) + BOUND) / unit).astype(np.int64)
            yield Case(f"update of the {model}", bits, unit, messages)


class Keywright:
    """The ring, the primes and the scale of the peer: N = 2^13, 60-40-40 and 60 bits special, 2^40."""

    def __init__(self) -> None:
        parameters = kw.Parameters.from_bits(13, [60, 40, 40], [60], 40)
        secret = kw.SecretKey.generate(parameters)
        self.public = kw.KeyGenerator(secret).public_key()
        self.encryptor, self.decryptor = kw.Encryptor(self.public), kw.Decryptor(secret)

    def measure(self, chem: ChemEncryptor, messages: list[int], unit: float) -> dict[str, float]:
        """Seconds of both ways, and by how much the errors of every eighth result are above their bounds."""
        values = [message * unit for message in messages]
        sums, chem_seconds = timed(chem.encrypt, messages)
        plain, plain_seconds = timed(lambda: [self.encryptor.encrypt([value], 1) for value in values])
        above = [
            np.abs(self.decryptor.decrypt(ciphertexts[i]) - values[i]).max() - ciphertexts[i].error_bound
            for ciphertexts in (sums, plain)
            for i in range(0, len(values), 8)
        ]
        return {
            "chem_cpu": chem_seconds.cpu,
            "plain_cpu": plain_seconds.cpu,
            "error": max(0.0, float(max(above))),
        }


def measure(case: Case, peer: PeerProcess, ours: Keywright, rounds: int, batch: int) -> list[dict[str, Any]]:
    """Rounds of one case; the first one is not kept.

    Raises:
        SystemExit: a result is wrong.
    """
    rng, decrypted = np.random.default_rng(3), []
    acknowledged = "Chem does not hide messages"
    chem = ChemEncryptor(ours.public, case.bits, acknowledge=acknowledged, unit=case.unit)
    for turn in range(-1, rounds):
        messages = rng.choice(case.messages, batch).tolist()
        answers = {
            "TenSEAL": peer.ask({"messages": messages, "bits": case.bits, "unit": case.unit}),
            "Keywright": ours.measure(chem, messages, case.unit),
        }
        for base, answer in answers.items():
            if not answer["error"] <= ALLOWED:
                raise SystemExit(f"{base}, {case.name}, {case.bits} bits: off by {answer['error']}")
            if turn >= 0:
                ratio = answer["chem_cpu"] / answer["plain_cpu"]
                decrypted.append(
                    {"case": case.name, "bits": case.bits, "base": base, "round": turn, "values": batch}
                    | {"ratio": ratio, **answer}
                )
    return decrypted


def table(rows: list[dict[str, Any]]) -> list[str]:
    """Medians and extremes in Markdown."""
    groups: dict[tuple[str, int, str], list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        groups[row["case"], row["bits"], row["base"]].append(row)
    cells = []
    for (case, bits, base), runs in groups.items():
        each = {way: [1e3 * run[f"{way}_cpu"] / run["values"] for run in runs] for way in ("chem", "plain")}
        ratios = spread([run["ratio"] for run in runs])
        cells.append([case, bits, base, spread(each["chem"]), spread(each["plain"]), ratios])
    heads = ["values", "bits", "base", "Chem, ms per value", "plain, ms per value", "Chem / plain"]
    return markdown(heads, cells, aligned=False)


def main() -> None:
    """Measure, check, write."""
    parser = argparse.ArgumentParser(
        prog="python -m studies.cached_encryption.on_tenseal", description=__doc__
    )
    parser.add_argument("--mnist", type=Path, required=True, help="folder of MNIST's files")
    parser.add_argument("--rounds", type=int, default=5, help="rounds of each case (default: 5)")
    parser.add_argument("--batch", type=int, default=100, help="values in a round (default: 100)")
    parser.add_argument("--images", type=int, default=200, help="that a client trains on (default: 200)")
    parser.add_argument("--build", type=Path, default=BUILD, help="folder of the peers' builds")
    parser.add_argument("--out", type=Path, help="folder of the record (default: record/DATE-chem)")
    options = parser.parse_args()
    folder = record_folder(options.out, "chem")
    data = options.mnist.resolve()
    os.chdir(HERE)
    console = Console()
    pin(1)
    kw.set_threads(1)
    try:
        peer = PeerProcess("tenseal", "peers.tenseal.chem", options.build.resolve(), console)
    except Unavailable as unavailable:
        raise SystemExit(f"tenseal: {unavailable}") from unavailable
    ours, rows = Keywright(), []
    with (folder / "on_tenseal.jsonl").open("w") as raw:
        for case in cases(data, options.images):
            for row in measure(case, peer, ours, options.rounds, options.batch):
                rows.append(row)
                print(json.dumps(row), file=raw, flush=True)
            console.status(f"{case.name}, {case.bits} bits")
    text = "\n".join(
        [
            *heading(
                "Chem beside plain encryption, on two libraries",
                "N = 2^13, 60-40-40-60, one thread, radix 2, CPU time",
                f"median (smallest to largest) of {options.rounds} rounds of {options.batch} values",
                f"load of the machine {os.getloadavg()[0]:.1f}",
            ),
            *table(rows),
            "",
        ]
    )
    (folder / "on_tenseal.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
