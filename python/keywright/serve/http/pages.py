"""The web page that is served with a model: files of a folder, read once and served from memory."""

from collections.abc import Mapping
from pathlib import Path

from keywright.errors.service import BadRequestError

TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".wasm": "application/wasm",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".json": "application/json",
}
MAX_PAGE_BYTES = 16 << 20

Page = Mapping[str, tuple[str, bytes]]
"""Files by path: (type, bytes)."""


def load_page(folder: Path) -> dict[str, tuple[str, bytes]]:
    """Read the files of a page into memory, by path: (type, bytes). ``index.html`` is also ``/``.

    Raises:
        BadRequestError: the folder has no ``index.html``, or more than `MAX_PAGE_BYTES`.
    """
    page: dict[str, tuple[str, bytes]] = {}
    left = MAX_PAGE_BYTES
    for path in sorted(folder.rglob("*")):
        kind = TYPES.get(path.suffix)
        hidden = any(
            part.startswith(".") or part == "node_modules" for part in path.relative_to(folder).parts
        )
        if kind is None or hidden or path.is_symlink() or not path.is_file():
            continue
        left -= path.stat().st_size
        if left < 0:
            raise BadRequestError(
                f"the page in {folder} exceeds {MAX_PAGE_BYTES} bytes; serve a smaller page"
            )
        page["/" + path.relative_to(folder).as_posix()] = (kind, path.read_bytes())
    if "/index.html" not in page:
        raise BadRequestError(f"{folder} holds no index.html")
    page["/"] = page["/index.html"]
    return page
