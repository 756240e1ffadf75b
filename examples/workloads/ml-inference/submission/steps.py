"""The steps of fhe-benchmarking/ml-inference: the work of client and server between the harness's own steps.

The harness starts each step in a separate process, in the root of its checkout, with the number of a size.
Its folders: datasets/SIZE/intermediate/test_pixels.txt has an image a line, 784 numbers in [0, 1]; in
io/SIZE, public_keys, ciphertexts_upload and ciphertexts_download pass between client and server, secret_key
and intermediate stay with the client, and encrypted_model_predictions.txt gets a label a line.
"""

import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import keywright as kw
import numpy as np
from keywright.model import Model, ModelClient
from numpy.typing import NDArray
from programs import BUILD, emptied, say

SIZES = (("single", 1), ("small", 15), ("medium", 1_000), ("large", 10_000))
"""Names and numbers of images, in the harness's order."""

PIXELS = 784


class Folders:
    """The harness's folders for a size."""

    def __init__(self, size: int) -> None:
        name = SIZES[size][0]
        exchange = Path("io") / name
        self.pixels = Path("datasets") / name / "intermediate" / "test_pixels.txt"
        self.keys = exchange / "public_keys" / "evaluation_keys.kw"
        self.secret = exchange / "secret_key" / "secret.kw"
        self.upload, self.download = exchange / "ciphertexts_upload", exchange / "ciphertexts_download"
        self.samples = exchange / "intermediate" / "samples.npy"
        self.scores = exchange / "intermediate" / "scores.npy"
        self.predictions = exchange / "encrypted_model_predictions.txt"


def model_folder(size: int) -> Path:
    """Return the folder that `build.py` compiled for a size."""
    return BUILD / "models" / SIZES[size][0]


def client_key_generation(size: int) -> None:
    """Make a secret key, and the keys that the model's plan names."""
    model, folders = Model.load(model_folder(size)), Folders(size)
    folders.secret.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    folders.keys.parent.mkdir(parents=True, exist_ok=True)
    secret = kw.SecretKey.generate(model.parameters)
    secret.save(folders.secret)
    kw.KeyGenerator(secret).save_evaluation_keys(folders.keys, model.specs)


def server_preprocess_model(size: int) -> None:
    """Check that the model is complete. It was compiled before keys could be made, and its diagonals are
    encoded when it is loaded, so nothing else is left to do."""
    model = Model.load(model_folder(size))
    say("server", f"{SIZES[size][0]}: {model.program.depth} levels, {len(model.specs)} keys")


def client_preprocess_input(size: int) -> None:
    """Convert pixels from text to numbers.

    Raises:
        SystemExit: the number of images is wrong, or pixels are not in [0, 1].
    """
    folders = Folders(size)
    values = np.loadtxt(folders.pixels, dtype=np.float64, ndmin=2)
    if values.shape != (SIZES[size][1], PIXELS):
        raise SystemExit(f"{folders.pixels} has numbers {values.shape}, expected {(SIZES[size][1], PIXELS)}")
    if not ((values >= 0) & (values <= 1)).all():
        raise SystemExit(f"{folders.pixels} has pixels that are not in [0, 1]")
    folders.samples.parent.mkdir(parents=True, exist_ok=True)
    np.save(folders.samples, values)


def client_encode_encrypt_input(size: int) -> None:
    """Write a seeded ciphertext, or several, for each batch of images."""
    model, folders = Model.load(model_folder(size)), Folders(size)
    program = model.program
    client = ModelClient(model, secret=kw.SecretKey.load(folders.secret, model.parameters))
    samples = np.load(folders.samples).reshape(-1, *program.input.shape)
    folder = emptied(folders.upload)
    for batch, group in enumerate(program.batches(samples)):
        for index, ciphertext in enumerate(client.encrypt_batch(group)):
            (folder / file_name(batch, index)).write_bytes(ciphertext)


def server_encrypted_compute(size: int) -> None:
    """Evaluate the network on every batch."""
    start = time.perf_counter()
    model, folders = Model.load(model_folder(size)), Folders(size)
    uploads = batches(folders.upload)
    keys = model.execution.load_keys(folders.keys)
    loaded = time.perf_counter()
    runner = model.runner()
    say("server", f"model and keys read in {loaded - start:.3f} s")
    say("server", f"diagonals encoded in {time.perf_counter() - loaded:.3f} s")
    seconds = []
    folder = emptied(folders.download)
    for batch, paths in enumerate(uploads):
        inputs = [model.requests.read(path.read_bytes()) for path in paths]
        start = time.perf_counter()
        answer = model.requests.answer(runner, keys, inputs)
        seconds.append(time.perf_counter() - start)
        for index, data in enumerate(answer.objects):
            (folder / file_name(batch, index)).write_bytes(data)
    images = f"{model.program.batch} images" if model.program.batch > 1 else "image"
    say("server", f"evaluation: {sum(seconds):.3f} s, {np.median(seconds):.3f} s for {images}")


def client_decrypt_decode(size: int) -> None:
    """Write the scores of all images."""
    model, folders = Model.load(model_folder(size)), Folders(size)
    program, left = model.program, SIZES[size][1]
    client = ModelClient(model, secret=kw.SecretKey.load(folders.secret, model.parameters))
    scores: list[NDArray[np.float64]] = []
    for paths in batches(folders.download):
        count = min(left, program.batch)
        results = [path.read_bytes() for path in paths]
        scores.append(client.decrypt_batch(results, count).reshape(count, -1))
        left -= count
    np.save(folders.scores, np.concatenate(scores))


def client_postprocess(size: int) -> None:
    """Write the label of every image: the index of its largest score."""
    folders = Folders(size)
    labels = np.load(folders.scores).argmax(axis=1)
    if len(labels) != SIZES[size][1]:
        raise SystemExit(f"{len(labels)} images were decrypted, {SIZES[size][1]} were encrypted")
    folders.predictions.write_text("".join(f"{label}\n" for label in labels))


STEPS: dict[str, Callable[[int], None]] = {
    step.__name__: step
    for step in (
        client_key_generation,
        server_preprocess_model,
        client_preprocess_input,
        client_encode_encrypt_input,
        server_encrypted_compute,
        client_decrypt_decode,
        client_postprocess,
    )
}


def file_name(batch: int, index: int) -> str:
    """Return the file name of a ciphertext from its batch and its index there."""
    return f"{batch:06}-{index}.kw"


def batches(folder: Path) -> list[list[Path]]:
    """Return the files of each batch, in order.

    Raises:
        SystemExit: there are none.
    """
    batches: dict[str, list[Path]] = {}
    for path in sorted(folder.glob("*-*.kw")):
        batches.setdefault(path.name.partition("-")[0], []).append(path)
    if not batches:
        raise SystemExit(f"{folder} holds no ciphertexts, because an earlier step failed")
    return list(batches.values())


def main(name: str, arguments: Sequence[str]) -> None:
    """Run a step for the given size; for every size without one, as the harness requires for the model.

    Raises:
        SystemExit: there is no such size.
    """
    if not arguments and name == server_preprocess_model.__name__:
        for size in range(len(SIZES)):
            STEPS[name](size)
        return
    if len(arguments) != 1 or arguments[0] not in ("0", "1", "2", "3"):
        raise SystemExit(f"usage: {Path(sys.argv[0]).name} SIZE, from 0 (single) to 3 (large)")
    STEPS[name](int(arguments[0]))
