"""The web page that is served with a model: files of a folder, read once and served from memory. Without one,
a browser gets a description of the service, which has no scripts, forms or external resources."""

from collections.abc import Mapping
from html import escape
from pathlib import Path

from starlette.requests import Request
from starlette.responses import HTMLResponse

from keywright._units import format_bytes, format_seconds
from keywright.errors.service import BadRequestError
from keywright.serve.service import Service

from .admin import POLICY, STYLE

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


def accepts_html(request: Request) -> bool:
    """Return whether a request is of a browser, which names HTML among the types that it accepts."""
    return "text/html" in request.headers.get("accept", "")


def front_page(service: Service, request: Request) -> HTMLResponse:
    """Return the page of a service for the address that a request was sent to."""
    address = str(request.base_url).rstrip("/")
    return HTMLResponse(describe(service, address), headers={"content-security-policy": POLICY})


def describe(service: Service, address: str) -> str:
    """Return the HTML. All values are escaped."""
    sections = "".join(_model(line) for line in service.model_lines())
    return (
        "<!doctype html>\n<html lang=en><head><meta charset=utf-8>"
        '<meta name=viewport content="width=device-width, initial-scale=1">'
        f"<title>Keywright: {escape(service.model.name)}</title><style>{STYLE}</style></head><body><main>"
        "<h1>This server computes on data that it cannot read</h1>"
        "<p>Clients encrypt their samples and decrypt the answers. The server gets evaluation keys, "
        f"which compute but cannot decrypt.</p>{sections}"
        f"<section><h2>Ask it from Python</h2><pre>{escape(service.model.example(address))}</pre></section>"
        "<p>For programs: <a href=/v1/models>/v1/models</a> lists the models. "
        "Start the server with <code>--page</code> to serve a page of your own here.</p>"
        "</main></body></html>\n"
    )


def _model(line: dict[str, object]) -> str:
    """Return the section of a model, from its line of ``/v1/models``."""
    rows = {
        "Keys, sent once": format_bytes(float(str(line["bytes"]))),
        "One evaluation": "about " + format_seconds(float(str(line["seconds"]))),
        "Hash": str(line["model"]),
    }
    body = "".join(
        f"<tr><th scope=row>{escape(k)}</th><td class=long>{escape(v)}</td></tr>" for k, v in rows.items()
    )
    return f"<section><h2>Model {escape(str(line['name']))}</h2><table class=facts>{body}</table></section>"
