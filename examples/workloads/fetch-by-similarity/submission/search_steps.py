"""The steps of fhe-benchmarking/fetch-by-similarity: the work of client and server between the harness's own.

The harness starts each step in a separate process, in the root of its checkout, with the number of a size.
datasets/SIZE has db.bin, payloads.bin and query.bin. In io/SIZE, keys, ciphertexts_upload and
ciphertexts_download pass between client and server, secret and raw stay with the client, and results.bin gets
the payloads of the matches, sorted.
"""

import json
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import keywright as kw
import numpy as np
import similarity
from programs import BUILD, emptied, say

SIZES = (("toy", 1_000), ("small", 50_000))
"""Names and numbers of records, in the harness's order. Larger sizes have longer records."""


class Folders:
    """The harness's folders for a size."""

    def __init__(self, size: int) -> None:
        name = SIZES[size][0]
        self.data, exchange = Path("datasets") / name, Path("io") / name
        self.keys = exchange / "keys" / "evaluation_keys.kw"
        self.secret = exchange / "secret" / "secret.kw"
        self.records, self.payloads = (exchange / "ciphertexts_upload" / each for each in ("db", "payloads"))
        self.query = exchange / "ciphertexts_upload" / "query.bin"
        self.answer = exchange / "ciphertexts_download" / "results.bin"
        self.raw, self.results = exchange / "raw.npz", exchange / "results.bin"
        self.report = exchange / "server_reported_steps.json"


def parameters() -> kw.Parameters:
    """The parameters of client and server."""
    return similarity.parameters()


def decryptor(folders: Folders) -> kw.Decryptor:
    """The client's decryptor, which also encrypts."""
    return kw.Decryptor(kw.SecretKey.load(folders.secret, parameters()))


def client_key_generation(size: int) -> None:
    """Make a secret key and evaluation keys."""
    folders = Folders(size)
    folders.secret.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    folders.keys.parent.mkdir(parents=True, exist_ok=True)
    secret = kw.SecretKey.generate(parameters())
    secret.save(folders.secret)
    kw.KeyGenerator(secret).save_evaluation_keys(folders.keys, similarity.key_specs(parameters()))


def client_encode_encrypt_db(size: int) -> None:
    """Encrypt records and payloads.

    Raises:
        SystemExit: their number is wrong, or a payload is not in [0, 512).
    """
    folders, client = Folders(size), decryptor(Folders(size))
    slots, count = parameters().max_slots, SIZES[size][1]
    records = np.fromfile(folders.data / "db.bin", np.float32).reshape(-1, 2 * similarity.PAIRS)
    payloads = np.fromfile(folders.data / "payloads.bin", np.int16).reshape(-1, similarity.VALUES)
    if len(records) != count or len(payloads) != count:
        raise SystemExit(f"{folders.data} has {len(records)} records, {len(payloads)} payloads, not {count}")
    if not ((payloads >= 0) & (payloads < similarity.BASE)).all():
        raise SystemExit(
            f"{folders.data / 'payloads.bin'} has numbers that are not in [0, {similarity.BASE})"
        )
    for folder, vectors, level in (
        (folders.records, similarity.record_vectors(records, slots), similarity.LEVELS),
        (folders.payloads, similarity.payload_vectors(payloads, slots), 1),
    ):
        emptied(folder)
        for number, vector in enumerate(vectors):
            similarity.encrypt(client, vector, level).save(folder / f"{number:06}.kw")


def client_encode_encrypt_query(size: int) -> None:
    """Encrypt the query."""
    folders = Folders(size)
    vector = similarity.query_vector(np.fromfile(folders.data / "query.bin", np.float32))
    query = similarity.encrypt(decryptor(folders), vector, similarity.LEVELS, similarity.PAIRS)
    query.save(folders.query)


def server_encrypted_compute(size: int) -> None:
    """Compute the answer; ciphertexts of records are read when they are needed."""
    folders, chain = Folders(size), parameters()
    start = time.perf_counter()
    evaluator = kw.Evaluator(chain, kw.EvaluationKeys.load(folders.keys, chain))
    query = kw.Ciphertext.load(folders.query, chain)
    step = similarity.Step(**np.load(BUILD / "step.npz"))
    times = {"reading of keys": time.perf_counter() - start}

    def timed(name: str, since: float) -> float:
        now = time.perf_counter()
        times[name] = times.get(name, 0.0) + now - since
        return now

    def read(folder: Path, number: int) -> kw.Ciphertext:
        return kw.Ciphertext.load(folder / f"{number:06}.kw", chain)

    def record(block: int, number: int) -> kw.Ciphertext:
        return read(folders.records, block * similarity.PAIRS + number)

    clock = time.perf_counter()
    blocks = similarity.blocks(SIZES[size][1], chain.max_slots)
    scores = similarity.scores(evaluator, query, blocks, record)
    clock = timed("scores", clock)
    answer: list[kw.Ciphertext] = []
    for block, each in enumerate(scores):
        above = step.encrypted(evaluator, each)
        clock = timed("step", clock)
        payloads = [read(folders.payloads, 2 * block + part) for part in (0, 1)]
        answer += similarity.matching(evaluator, above, payloads)
        clock = timed("payloads", clock)
    folders.answer.parent.mkdir(parents=True, exist_ok=True)
    folders.answer.write_bytes(joined(each.to_bytes() for each in answer))
    times |= {"total": time.perf_counter() - start, "processor time": time.process_time()}
    for name, seconds in times.items():
        say("server", f"{name}: {seconds:.3f} s")
    folders.report.write_text(json.dumps({name: round(seconds, 3) for name, seconds in times.items()}))


def client_decrypt_decode(size: int) -> None:
    """Decrypt the answer."""
    folders, client = Folders(size), decryptor(Folders(size))
    values = [
        client.decrypt_complex(kw.Ciphertext.from_bytes(data, parameters()))
        for data in parts(folders.answer.read_bytes())
    ]
    np.savez(folders.raw, values=np.stack(values))


def client_postprocess(size: int) -> None:
    """Write the payloads of the matches, sorted by their first number, then by the next."""
    folders = Folders(size)
    values = np.load(folders.raw)["values"].reshape(-1, 3, parameters().max_slots)
    payloads = np.concatenate([similarity.payloads_of(each[0].real, each[1:]) for each in values])
    payloads[np.lexsort(payloads.T[::-1])].tofile(folders.results)


STEPS: dict[str, Callable[[int], None]] = {
    step.__name__: step
    for step in (
        client_key_generation,
        client_encode_encrypt_db,
        client_encode_encrypt_query,
        server_encrypted_compute,
        client_decrypt_decode,
        client_postprocess,
    )
}


def joined(messages: Iterable[bytes]) -> bytes:
    """Messages behind their lengths."""
    return b"".join(len(each).to_bytes(8, "little") + each for each in messages)


def parts(data: bytes) -> list[bytes]:
    """The messages of `joined`."""
    messages, start = [], 0
    while start < len(data):
        size = int.from_bytes(data[start : start + 8], "little")
        messages.append(data[start + 8 : start + 8 + size])
        start += 8 + size
    return messages


def main(name: str, arguments: Sequence[str]) -> None:
    """Run a step for a size. The harness's seed is not used.

    Raises:
        SystemExit: there is no such size, or only the number of matches is asked for.
    """
    if "--count_only" in arguments:
        raise SystemExit("this submission returns payloads; run the harness without --count_only")
    if not arguments or arguments[0] not in ("0", "1"):
        raise SystemExit(f"usage: {Path(sys.argv[0]).name} SIZE, 0 (toy) or 1 (small)")
    STEPS[name](int(arguments[0]))
