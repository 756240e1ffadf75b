"""Ask a served model through the C client: it makes the keys, encrypts pictures and reads their classes.

    cargo build --release -p keywright-capi
    python examples/c_client.py                        the shipped digits: seconds for each
    python examples/c_client.py --cifar ARCHIVE        CIFAR-10's, with a network as small; needs pillow
    python examples/c_client.py --cifar ARCHIVE --model examples/models/resnet8_cifar.onnx     13 GB, minutes

The C program (crates/capi/examples/classify.c) has the secret key. This script compiles it, starts
keywright's server with the model in this process, and carries files between the two: a key set and messages
to the server, answers back. ARCHIVE is a tar file of 32 x 32 images named .../CLASS/NAME. The script
classifies the first images of every class in turn that train_cifar.py did not train on. Exits with 1 if a
class differs from that of the compiled network in the clear, on the same pixels.
"""

import argparse
import io
import math
import os
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
from collections.abc import Iterator
from importlib.resources import files
from itertools import islice
from pathlib import Path
from typing import Any

import keywright as kw
import numpy as np
from cifar import CLASSES, TEST_EVERY
from keywright import client, compiler, serve
from keywright.model import Entry, Manifest, Model
from keywright.runtime import run_clear
from numpy.typing import NDArray

ROOT = Path(__file__).parent.parent
CIFAR_MODEL = ROOT / "examples" / "models" / "small_cifar.onnx"
CALIBRATION = 40
POLL_S = 0.2
PIECE_BYTES = 4 << 20

Image = tuple[str, NDArray[np.uint8]]
"""A name and the planes of a picture, (channels, height, width)."""


def digits(count: int) -> Iterator[Image]:
    """Test images of the shipped digits."""
    with (files("keywright") / "data" / "digits_test.npz").open("rb") as file, np.load(file) as arrays:
        for index, image in enumerate(arrays["images"][:count]):
            yield f"digit {arrays['labels'][index]}", np.round(image * 255).astype(np.uint8)


def cifar(archive: Path, *, test: bool) -> Iterator[Image]:
    """Yield images of an archive, classes in turn, of the test split of train_cifar.py or of the training
    split."""
    from PIL import Image as Pictures

    with tarfile.open(archive) as tar:
        classes: dict[str, list[tarfile.TarInfo]] = {}
        for member in sorted(tar, key=lambda member: member.name):
            if member.isfile():
                classes.setdefault(Path(member.name).parent.name, []).append(member)
        chosen = [
            [member for index, member in enumerate(members) if (index % TEST_EVERY == 0) == test]
            for members in classes.values()
        ]
        for turn in zip(*chosen, strict=True):
            for member in turn:
                data = tar.extractfile(member)
                assert data is not None  # a file
                with Pictures.open(io.BytesIO(data.read())) as picture:
                    pixels = np.asarray(picture.convert("RGB"))
                yield "/".join(Path(member.name).parts[-2:]), np.ascontiguousarray(pixels.transpose(2, 0, 1))


def one(path: Path) -> Iterator[Image]:
    """Yield a picture that pillow reads."""
    from PIL import Image as Pictures

    with Pictures.open(path) as picture:
        grey = picture.mode in ("1", "L", "I;16")
        pixels = np.asarray(picture.convert("L" if grey else "RGB"))
    yield path.name, np.atleast_3d(pixels).transpose(2, 0, 1)


def write_picture(path: Path, planes: NDArray[np.uint8]) -> None:
    """Write a binary PGM or PPM."""
    channels, height, width = planes.shape
    header = f"P{5 if channels == 1 else 6} {width} {height} 255\n".encode()
    path.write_bytes(header + planes.transpose(1, 2, 0).tobytes())


def write_model(folder: Path, manifest: Manifest) -> None:
    """Write the parts of a manifest that the C program reads."""
    (folder / "client.kw").write_bytes(manifest.format.client)
    (folder / "parameters.kw").write_bytes(manifest.format.parameters)
    (folder / "keys.kw").write_bytes(manifest.keys.head)
    lines = [str(round(math.log2(manifest.input.scale)))]
    for places in (manifest.input.places, manifest.output.places):
        numbers = (
            places.ciphertexts,
            places.size,
            places.repeat,
            places.stride,
            len(places.start),
        )
        lines += [" ".join(map(str, numbers)), " ".join(map(str, places.start))]
    (folder / "places.txt").write_text("\n".join([*lines, *manifest.output.labels]) + "\n")


def compile_client(library: Path, program: Path) -> None:
    """Compile the C program.

    Raises:
        SystemExit: the library is missing, or the compiler fails.
    """
    if not (library / "libkeywright_capi.a").is_file():
        raise SystemExit(f"{library} has no libkeywright_capi.a; cargo build -p keywright-capi makes it")
    capi = ROOT / "crates" / "capi"
    command = [os.environ.get("CC", "cc"), "-std=c11", "-O2", "-I", str(capi / "include")]
    command += [str(capi / "examples" / "classify.c"), str(library / "libkeywright_capi.a")]
    done = subprocess.run([*command, "-lpthread", "-ldl", "-lm", "-o", str(program)], check=False)
    if done.returncode != 0:
        raise SystemExit(f"the C compiler ended with status {done.returncode}")


def upload(remote: client.RemoteModel, keys: Path) -> str:
    """Send a key set. Returns its identifier."""
    identifier = str(remote.ask("POST", "/v1/keys", {"model": remote.manifest.hash})["keys"])
    with keys.open("rb") as file:
        place = 0
        while piece := file.read(PIECE_BYTES):
            remote.send("PUT", f"/v1/keys/{identifier}/parts?offset={place}", piece)
            place += len(piece)
    return identifier


def ask(remote: client.RemoteModel, keys: str, message: bytes) -> tuple[bytes, float]:
    """Send ciphertexts. Returns the answer, and the seconds of its evaluation."""
    job = remote.send("POST", f"/v1/keys/{keys}/jobs", message)
    while job["state"] in ("waiting", "running"):
        time.sleep(POLL_S)
        job = remote.ask("GET", f"/v1/jobs/{job['job']}")
    result = remote.request("GET", f"/v1/jobs/{job['job']}/result", limit=len(message) * 64)
    return result, float(str(job["seconds"]))


def toy_model() -> Model:
    """Return the shipped digits in a ring without security."""
    entry: dict[str, Any] = {
        "slots": 512,
        "values": "real",
        "slots_to_coeffs": 2,
        "coeffs_to_slots": 2,
        "log_ratio": 10,
        "cosine_degree": 50,
        "double_angles": 2,
        "arcsine_degree": 1,
        "key_budget": "fewest",
    }
    bits = [42, 36, 36, *[38] * 5, *[50] * 8, 46, 46]
    parameters = kw.Parameters.from_bits(10, bits, [50, 50, 50], 38, insecure=True)
    plan = kw.BootstrapperPlan(parameters, **entry)
    program = compiler.compile_program(
        (files("keywright") / "data" / "digits.onnx").read_bytes(),
        compiler.Target(
            slots=plan.slots,
            levels=plan.output_level,
            output_level=plan.input_level,
            packing="coefficients",
        ),
    )
    return Model("digits", program, parameters, (), Entry(plan, entry), tuple("0123456789"))


def make_model(arguments: argparse.Namespace) -> Model:
    """Return the served model, for thin clients."""
    if arguments.toy:
        return toy_model()
    if arguments.cifar is None:
        digits = (files("keywright") / "data" / "digits.onnx").read_bytes()
        return kw.compile(digits, client="thin", batch=1, labels="0123456789")
    typical = [planes / 255 for _, planes in islice(cifar(arguments.cifar, test=False), CALIBRATION)]
    return kw.compile(arguments.model, np.stack(typical), client="thin", batch=1, labels=CLASSES)


def main() -> int:
    """Classify; the exit code says whether the classes are those in the clear."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--library", dest="folder", type=Path, default=ROOT / "target" / "release")
    parser.add_argument("--cifar", type=Path, help="archive of CIFAR-10's test images as JPEG files")
    parser.add_argument("--model", type=Path, default=CIFAR_MODEL, help="network of CIFAR-10's images")
    parser.add_argument("--toy", action="store_true", help="the digits in a small ring")
    parser.add_argument("--count", type=int, default=3, help="pictures (default: 3)")
    parser.add_argument("--image", type=Path, help="classify this picture instead")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        model = make_model(arguments)
        program = scratch / "classify"
        compile_client(arguments.folder, program)
        service = serve.Service(model, scratch / "state")
        with serve.Server(service) as server:
            thread = threading.Thread(target=server.serve_forever, daemon=True)
            thread.start()
            try:
                remote = client.RemoteModel(server.url, insecure=arguments.toy)
                return classify(arguments, model, remote, program, scratch)
            finally:
                server.shutdown()
                thread.join()
                service.close()


def classify(
    arguments: argparse.Namespace,
    model: Model,
    remote: client.RemoteModel,
    program: Path,
    scratch: Path,
) -> int:
    """Run the client's part. Returns 1 if a class differs from that in the clear."""
    write_model(scratch, remote.manifest)
    secret, keys, message, answer = (scratch / name for name in ("secret", "keys", "message", "answer"))

    options = ["--insecure"] if arguments.toy else []

    def run(command: str, *paths: Path) -> tuple[str, float]:
        start = time.perf_counter()
        line = [str(program), *options, command, str(scratch), str(secret), *map(str, paths)]
        done = subprocess.run(line, stdout=subprocess.PIPE, text=True, check=True)
        return done.stdout.strip(), time.perf_counter() - start

    _, making = run("keys", keys)
    print(f"{model.parameters!r}: {keys.stat().st_size / 1e6:.0f} MB of keys in {making:.1f} s")
    identifier = upload(remote, keys)
    if arguments.image is not None:
        pictures = one(arguments.image)
    else:
        pictures = digits(arguments.count) if arguments.cifar is None else cifar(arguments.cifar, test=True)
    differ = 0
    for name, planes in islice(pictures, arguments.count):
        picture = scratch / "picture"
        write_picture(picture, planes)
        _, encrypting = run("encrypt", picture, message)
        received, seconds = ask(remote, identifier, message.read_bytes())
        answer.write_bytes(received)
        text, decrypting = run("decrypt", answer)
        label = text.partition(" ")[0]
        clear = int(run_clear(model.program, planes / 255).argmax())
        differ += label != str(clear)
        sizes = f"{message.stat().st_size} bytes there, {len(received)} back"
        times = f"{encrypting:.3f} s to encrypt, {seconds:.2f} s to evaluate, {decrypting:.3f} s to read"
        print(f"{name}: {text}, in the clear {clear}; {sizes}; {times}", flush=True)
    print(f"{differ} classes differ from those in the clear")
    return int(differ > 0)


if __name__ == "__main__":
    sys.exit(main())
