"""The image of a server, built and run where there is a builder, without any registry of images.

Its base is Debian's Python, unpacked by debootstrap; the wheels are that of `make dist` and what it needs.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from .test_container import CONTAINER, ROOT

PACKAGES = ROOT / "target" / "packages" / "files"
NAME, PYTHON, WHEELS = (f"localhost/keywright-test{part}" for part in ("", "-python", "-wheels"))
PORT = 8700

pytestmark = pytest.mark.large


def run(*command: str | Path, cwd: Path = ROOT) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout.strip()


def import_image(folder: Path, name: str, to: str) -> None:
    """Make an image of a folder alone."""
    container = run("buildah", "from", "scratch")
    try:
        run("buildah", "add", container, folder, to)
        run("buildah", "commit", container, name)
    finally:
        run("buildah", "rm", container)


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The image that the container file builds."""
    missing = [name for name in ("buildah", "debootstrap") if shutil.which(name) is None]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}")
    if os.geteuid() != 0:
        pytest.skip("debootstrap needs root")
    wheel = sorted(PACKAGES.glob("keywright-*-manylinux_*_x86_64.whl"))
    if not wheel:
        pytest.skip("there is no wheel in target/packages/files: `make dist PARTS=wheels` builds it")
    scratch = tmp_path_factory.mktemp("image")
    base = scratch / "base"
    packages = "--include=python3,python3-venv"
    run("debootstrap", "--variant=minbase", packages, "bookworm", base, "http://deb.debian.org/debian")
    import_image(base, PYTHON, "/")
    wheels = scratch / "wheels"
    wheels.mkdir()
    shutil.copy(wheel[0], wheels)
    download = ("download", "--quiet", "--only-binary", ":all:", "--python-version", "3.11", "--dest", wheels)
    run(sys.executable, "-m", "pip", *download, f"{wheel[0]}[serve,storage]")
    import_image(wheels, WHEELS, "/wheels")
    arguments = ("--build-arg", f"PYTHON={PYTHON}", "--build-arg", f"WHEELS={WHEELS}")
    # The format of Docker has the health check.
    build = ("buildah", "bud", "--isolation", "chroot", "--pull-never", "--format", "docker", *arguments)
    run(*build, "--file", CONTAINER, "--tag", NAME, ROOT)
    yield NAME
    run("buildah", "rmi", "--force", NAME, PYTHON, WHEELS)


def test_the_image_serves_a_model_as_nobody(image: str, tmp_path: Path) -> None:
    model = tmp_path / "model"
    digits = ROOT / "python" / "keywright" / "data" / "digits.onnx"
    run(sys.executable, "-m", "keywright", "compile", digits, "--out", model)
    # What is compiled is its owner's alone; the user of the image is another one.
    for path in (model, *model.iterdir()):
        path.chmod(0o755 if path.is_dir() else 0o644)
    settings = json.loads(run("buildah", "inspect", "--type", "image", image))["Docker"]["config"]
    assert settings["User"] == "10001"
    assert settings["Entrypoint"][:3] == ["keywright", "serve", "/model"]
    assert list(settings["Volumes"]) == ["/state"]
    assert settings["Healthcheck"]["Test"][0] == "CMD"
    container = run("buildah", "from", image)
    inside = ("buildah", "run", "--isolation", "chroot", "--volume", f"{model}:/model:ro", container, "--")
    assert run(*inside, "id", "-u") == "10001"
    assert run(*inside, "sh", "-c", "command -v cargo pip || echo none") == "none"
    server = subprocess.Popen([*inside, *settings["Entrypoint"]])
    try:
        for _ in range(120):
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{PORT}/health", timeout=4) as answer:
                    assert answer.status == 200
                    break
            except urllib.error.URLError:
                assert server.poll() is None, "the server ended"
                time.sleep(0.5)
        else:
            pytest.fail("the server does not answer")
        # What tells a container's supervisor.
        run(*inside, *settings["Healthcheck"]["Test"][1:])
    finally:
        server.terminate()
        server.wait()
        run("buildah", "rm", container)
