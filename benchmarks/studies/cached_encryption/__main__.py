"""One value per ciphertext, and packed, compared with TenSEAL: `python -m studies.cached_encryption`."""

from __future__ import annotations

import argparse
import json
import os
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import keywright as kw
import numpy as np
from harness.console import Console
from harness.folders import BUILD, HERE, record_folder
from harness.measurement.clock import Seconds, timed
from harness.pages.table import heading, markdown, quotients, spread
from harness.programs.peer import peak_rss_bytes
from harness.programs.process import PeerProcess
from harness.programs.schedule import pin
from harness.programs.targets import Unavailable
from keywright.insecure import ChemEncryptor
from numpy.typing import NDArray

from studies.cached_encryption.tensors import mnist

UNIT = 2.0**-8
"""A pixel p is the number p / 256, exactly."""
CHEM_BITS = (8, 16, 32, 128)
CHEM_SHIFT = {8: 0, 16: 0, 32: 0, 128: 32}
"""Shifts of messages: with 128 bits of a chain of 140, the unit is the scale's own."""
ACKNOWLEDGEMENT = "Chem does not hide messages"
PEER_ERROR = 2.0**-20
"""TenSEAL states no bound. Its errors are near 2^-28 here; a wrong result is off by 2^-8 or more."""


class TenSeal:
    """TenSEAL in a process of its own."""

    def __init__(self, console: Console, build: Path) -> None:
        self.process = PeerProcess("tenseal", "peers.tenseal.scalars", build, console)

    def encrypt(self, values: NDArray[np.float64], way: str) -> dict[str, Any]:
        """One request; the result is checked."""
        answer = self.process.ask({"values": values.tolist(), "way": way})
        if answer["error"] > PEER_ERROR:
            raise SystemExit(f"TenSEAL's result is off by {answer['error']}")
        return answer


class Keywright:
    """The same ring, primes and scale: N = 2^13, 60-40-40 and 60 bits special, 2^40."""

    def __init__(self, capacity: int) -> None:
        self.parameters = kw.Parameters.from_bits(13, [60, 40, 40], [60], 40)
        self.secret = kw.SecretKey.generate(self.parameters)
        self.public = kw.KeyGenerator(self.secret).public_key()
        self.encryptor = kw.Encryptor(self.public)
        self.decryptor = kw.Decryptor(self.secret)
        self.pools: dict[str, Any] = {
            name: kw.EncryptionPool(key, capacity, threads=0, when_empty="error")
            for name, key in (("public", self.public), ("secret", self.secret))
        }
        self.chem: dict[int, ChemEncryptor] = {}
        self.cache_seconds: dict[int, Seconds] = {}
        for bits in CHEM_BITS:
            self.chem[bits], self.cache_seconds[bits] = timed(self.chem_of, bits)

    def chem_of(self, bits: int) -> ChemEncryptor:
        """Return Chem for messages of `bits` bits."""
        unit = UNIT * 2.0 ** -CHEM_SHIFT[bits]
        return ChemEncryptor(self.public, bits, acknowledge=ACKNOWLEDGEMENT, unit=unit)

    def one_by_one(self, values: Sequence[float]) -> list[kw.Ciphertext]:
        """Plain encryption, one value per ciphertext."""
        return [self.encryptor.encrypt([value], 1) for value in values]

    def check(self, ciphertexts: Sequence[Any], values: Sequence[float], every: int = 8) -> None:
        """Decrypt every eighth result and compare with its bound and the arithmetic of decoding."""
        for i in range(0, len(ciphertexts), every):
            ciphertext = (
                ciphertexts[i].expand() if isinstance(ciphertexts[i], kw.SeededCiphertext) else ciphertexts[i]
            )
            decrypted = self.decryptor.decrypt(ciphertext)
            expected = np.resize(values[i], decrypted.size)
            if np.abs(decrypted - expected).max() > ciphertext.error_bound + 1e-12:
                raise SystemExit(f"value {i} is wrong by {np.abs(decrypted - expected).max()}")


def rows(
    tenseal: TenSeal, ours: Keywright, pixels: NDArray[np.int64]
) -> Iterator[tuple[str, Seconds, int, int]]:
    """Measure one image in every way: name, seconds, number of values, bytes of one ciphertext."""
    values: NDArray[np.float64] = pixels.astype(np.float64) * UNIT
    listed, integers = values.tolist(), pixels.tolist()
    count = len(listed)

    answer = tenseal.encrypt(values, "scalar")
    yield "TenSEAL, scalar", Seconds(answer["wall"], answer["cpu"]), count, answer["bytes"]

    ciphertexts, seconds = timed(ours.one_by_one, listed)
    ours.check(ciphertexts, listed)
    whole = ciphertexts[0].bytes
    yield "plain, scalar", seconds, count, whole
    del ciphertexts

    for name, pool in ours.pools.items():
        _, seconds = timed(pool.fill)
        yield f"pool offline, {name}", seconds, count, pool.entry_bytes
        pooled, seconds = timed(pool.encrypt_scalars, values)
        yield f"pool online, {name}", seconds, count, pool.entry_bytes
        ours.check(pooled, listed)
        del pooled

    for bits, chem in ours.chem.items():
        messages = [pixel << CHEM_SHIFT[bits] for pixel in integers]
        sums, seconds = timed(chem.encrypt, messages)
        ours.check(sums, listed)
        yield f"Chem {bits} bits, scalar", seconds, count, whole
        del sums

    yield from packed(tenseal, ours, values)


def packed(
    tenseal: TenSeal, ours: Keywright, values: NDArray[np.float64]
) -> Iterator[tuple[str, Seconds, int, int]]:
    """All slots and all coefficients, of the image repeated."""
    slots, coefficients = np.resize(values, 4096), np.resize(values, 8192)
    answer = tenseal.encrypt(slots, "packed")
    yield "TenSEAL, packed", Seconds(answer["wall"], answer["cpu"]), slots.size, answer["bytes"]
    ways: list[tuple[str, Callable[[NDArray[np.float64]], Any], NDArray[np.float64]]] = [
        ("plain, packed in slots", ours.encryptor.encrypt, slots),
        ("plain, packed in coefficients", ours.encryptor.encrypt_coefficients, coefficients),
        ("seeded, packed in slots", ours.decryptor.encrypt, slots),
    ]
    for name, pool in ours.pools.items():
        pool.fill(2)
        ways += [
            (f"pool online, {name}, packed in slots", pool.encrypt, slots),
            (f"pool online, {name}, packed in coefficients", pool.encrypt_coefficients, coefficients),
        ]
    for name, encrypt, vectors in ways:
        ciphertexts, seconds = timed(encrypt, vectors)
        size = ciphertexts.bytes
        ciphertext = ciphertexts.expand() if isinstance(ciphertexts, kw.SeededCiphertext) else ciphertexts
        error = np.abs(ours.decryptor.decrypt(ciphertext) - vectors).max()
        if error > ciphertext.error_bound + 1e-12:
            raise SystemExit(f"{name} is wrong by {error}")
        yield name, seconds, vectors.size, size


def bandwidth(words: int) -> float:
    """Bytes per second, read and written, of adding one to that many words in place."""
    memory = np.zeros(words, np.uint64)
    one = np.uint64(1)
    best = min(timed(np.add, memory, one, memory)[1].wall for _ in range(9))
    return 2 * memory.nbytes / best


def table(measured: dict[str, list[tuple[Seconds, int, int]]], speed: float) -> str:
    """The result in Markdown."""
    scalar = [seconds.cpu / count for seconds, count, _ in measured["TenSEAL, scalar"]]
    rows = []
    for name, runs in measured.items():
        each = [1e6 * seconds.cpu / count for seconds, count, _ in runs]
        best = min(1e6 * seconds.wall / count for seconds, count, _ in runs)
        ratios = [1e6 * base / max(own, 1e-9) for base, own in zip(scalar, each, strict=True)]
        _, count, size = runs[0]
        # A scalar has a ciphertext of its own, packed values share one.
        share = size / count if "packed" in name else size
        rows.append([name, spread(each), f"{best:.4g}", spread(ratios), f"{share:.0f}"])
    heads = [
        "way",
        "us per value, CPU",
        "us, wall, best",
        "times below TenSEAL scalar, CPU",
        "bytes per value",
    ]
    lines = [*markdown(heads, rows, aligned=False), ""]
    return "\n".join([*lines, *ratios_of(measured), *bandwidth_of(measured, speed)])


def ratios_of(measured: dict[str, list[tuple[Seconds, int, int]]]) -> list[str]:
    """Return the required ratios, image by image."""

    def per_value(name: str) -> list[float]:
        return [seconds.cpu / count for seconds, count, _ in measured[name]]

    def line(text: str, above: list[float], below: list[float]) -> str:
        return f"* {text}: {spread(quotients(above, below))}"

    scalar, online = per_value("TenSEAL, scalar"), per_value("pool online, public")
    offline = per_value("pool offline, public")
    total = [a + b for a, b in zip(online, offline, strict=True)]
    plain = per_value("plain, scalar")
    lines = [
        line("TenSEAL / pool, online", scalar, online),
        line("TenSEAL / pool, online and offline", scalar, total),
        line("TenSEAL / pool of the secret key, online", scalar, per_value("pool online, secret")),
    ]
    for bits in CHEM_BITS:
        chem = per_value(f"Chem {bits} bits, scalar")
        lines += [
            line(f"Chem of {bits} bits / pool, online", chem, online),
            line(f"Chem of {bits} bits / plain encryption", chem, plain),
        ]
    for name in measured:
        if "packed" in name and not name.startswith("TenSEAL"):
            lines += [
                line(f"TenSEAL scalar / {name}, per value", scalar, per_value(name)),
                line(f"TenSEAL packed / {name}, per value", per_value("TenSEAL, packed"), per_value(name)),
            ]
    return lines


def bandwidth_of(measured: dict[str, list[tuple[Seconds, int, int]]], speed: float) -> list[str]:
    """Compare the bytes that the online part moves with the memory's speed."""
    moved = 2 * 3 * 8192 * 8
    best = min(seconds.wall / count for seconds, count, _ in measured["pool online, public"])
    share = f"{100 * moved / best / speed:.0f} % of the {speed / 1e9:.3g} GB/s of numpy adding one in place"
    return [
        f"* online, a scalar reads and writes {moved} bytes: {moved / best / 1e9:.3g} GB/s at best, {share}"
    ]


def parse_options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m studies.cached_encryption", description=__doc__)
    parser.add_argument("--mnist", type=Path, required=True, help="folder of MNIST's files")
    parser.add_argument("--images", type=int, default=100, help="images (default: 100, six minutes)")
    parser.add_argument("--build", type=Path, default=BUILD, help="folder of the peers' builds")
    parser.add_argument("--out", type=Path, help="folder of the record (default: record/DATE-cached)")
    return parser.parse_args()


def main() -> None:
    """Measure, check, write."""
    options = parse_options()
    os.chdir(HERE)
    console = Console()
    images = mnist(options.mnist, options.images).samples
    pin(1)
    kw.set_threads(1)
    try:
        tenseal = TenSeal(console, options.build.resolve())
    except Unavailable as unavailable:
        raise SystemExit(f"tenseal: {unavailable}") from unavailable
    ours = Keywright(images.shape[1])
    # Once untimed: tables, buffers and pages exist before the clock starts.
    list(rows(tenseal, ours, images[0]))
    folder = record_folder(options.out, "cached")
    measured: dict[str, list[tuple[Seconds, int, int]]] = defaultdict(list)
    with (folder / "raw.jsonl").open("w") as raw:
        for number, pixels in enumerate(images):
            for name, seconds, count, size in rows(tenseal, ours, pixels):
                measured[name].append((seconds, count, size))
                line = {
                    "image": number,
                    "way": name,
                    "wall_s": seconds.wall,
                    "cpu_s": seconds.cpu,
                    "values": count,
                    "bytes": size,
                }
                print(json.dumps(line), file=raw, flush=True)
            console.status(f"image {number + 1} of {len(images)}")
    peak = tenseal.encrypt(images[0].astype(np.float64) * UNIT, "scalar")["peak_rss_bytes"]
    caches = ", ".join(
        f"{bits} bits {chem.bytes / 1e6:.0f} MB in {ours.cache_seconds[bits].cpu * 1e3:.0f} ms"
        for bits, chem in ours.chem.items()
    )
    own = peak_rss_bytes() / 1e6
    text = "\n".join(
        [
            *heading(
                "Cached encryption",
                f"{len(images)} MNIST images of {images.shape[1]} values; N = 2^13, 60-40-40-60, one thread",
                f"peak memory: TenSEAL {peak / 1e6:.0f} MB, Keywright {own:.0f} MB (all ways in one process)",
                f"Chem caches: {caches}",
                f"median (smallest to largest) over images; load of the machine {os.getloadavg()[0]:.1f}",
            ),
            table(measured, bandwidth(images.shape[1] * 3 * 8192)),
            "",
        ]
    )
    (folder / "table.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
