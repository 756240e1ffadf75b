"""The operator's page: one HTML document without scripts, forms or external resources."""

import base64
import hashlib
import secrets
from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files
from ipaddress import ip_address

from starlette.requests import Request
from starlette.responses import HTMLResponse

from keywright._units import format_bytes, format_seconds
from keywright.errors.service import UnauthorizedError
from keywright.serve.overview import Overview
from keywright.serve.storage.state_folder import OPERATOR_KEY
from keywright.serve.tenants.accounts import bearer

REFRESH_S = 10

STYLE = (files("keywright") / "serve" / "http" / "admin.css").read_text(encoding="utf-8")
POLICY = (
    "default-src 'none'; style-src 'sha256-"
    + base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
    + "'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
CHALLENGE = {"www-authenticate": 'Basic realm="keywright: any name, an admin\'s key as password"'}

FORWARDED = ("forwarded", "x-forwarded-for", "x-real-ip", "via")
"""Headers that a proxy adds to forwarded requests."""


def require_operator(request: Request, key: str, loopback: frozenset[str]) -> None:
    """Check that a request may see the page of a server without accounts: its user is on this machine and can
    read the operator's key.

    A proxy on this machine connects from the loopback on behalf of everyone. The address alone therefore
    grants nothing, and requests with proxy headers or a host name other than the loopback's are refused.

    Args:
        request: the request.
        key: the operator's key, which a browser sends as a password.
        loopback: host names of this machine.

    Raises:
        UnauthorizedError: the request is from another machine.
        UnauthorizedError: it lacks the key.
    """
    host = request.headers.get("host", "")
    name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
    address = request.client.host if request.client is not None else ""
    try:
        near = ip_address(address).is_loopback
    except ValueError:
        near = False
    if not near or name.lower() not in loopback or any(header in request.headers for header in FORWARDED):
        raise UnauthorizedError(
            "this page is for the operator: open it on the server's machine, or start the server with "
            "--accounts and --admin",
            code="forbidden",
        )
    sent = (bearer(request.headers.get("authorization")) or "").partition(" ")[2].strip()
    if not secrets.compare_digest(sent.encode(), key.encode()):
        raise UnauthorizedError(
            f"the password of this page is in the file {OPERATOR_KEY} of the server's state"
        )


def admin_page(overview: Overview) -> HTMLResponse:
    """Return the page of an overview."""
    return HTMLResponse(render(overview), headers={"content-security-policy": POLICY})


def render(overview: Overview) -> str:
    """Return the HTML of an overview. All values are escaped."""
    state = "about to end: nothing new is taken" if overview.draining else "takes evaluations"
    rows = {
        "state": state,
        "up for": _span(overview.uptime),
        "evaluations that wait": f"{overview.queue.waiting} of at most {overview.queue.limit}",
        "the oldest of them": _span(overview.queue.oldest) if overview.queue.waiting else "none waits",
        "evaluations that run": str(overview.queue.running),
    }
    queue = "".join(f"<tr><th scope=row>{escape(k)}</th><td>{escape(v)}</td></tr>" for k, v in rows.items())
    models = _table(
        ("model", "hash", "a key set takes", "key sets"),
        (
            (line.name, line.model, format_bytes(line.key_bytes), str(line.key_sets))
            for line in overview.models
        ),
    )
    tenants = _table(
        ("tenant", "stored", "complete key sets", "begun", "waiting", "running"),
        (
            (
                line.name or "without an account",
                format_bytes(line.stored_bytes),
                *map(str, (line.complete, line.incomplete, line.waiting, line.running)),
            )
            for line in overview.tenants
        ),
        empty="No tenant has keys here.",
    )
    machines = _table(
        ("machine", "processors", "load", "free memory", "free disk", "workers", "memory of the service"),
        (
            (
                line.name,
                str(line.processors),
                "" if line.load is None else f"{line.load:.2f}",
                _bytes(line.free_memory),
                _bytes(line.free_disk),
                "" if line.workers is None else str(line.workers),
                _bytes(line.resident_bytes),
            )
            for line in overview.machines
        ),
    )
    return (
        "<!doctype html>\n<html lang=en><head><meta charset=utf-8>"
        '<meta name=viewport content="width=device-width, initial-scale=1">'
        f"<meta http-equiv=refresh content={REFRESH_S}><title>Keywright: this server</title>"
        f"<style>{STYLE}</style></head><body><main><h1>Keywright: this server</h1>"
        f"<section><h2>Queue</h2><table class=facts>{queue}</table></section>"
        f"<section><h2>Models</h2>{models}</section><section><h2>Tenants</h2>{tenants}</section>"
        f"<section><h2>Machines</h2>{machines}</section>"
        f"<p>Read anew every {REFRESH_S} seconds. Numbers for programs: <a href=/metrics>/metrics</a>.</p>"
        "</main></body></html>\n"
    )


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]], empty: str = "There is none.") -> str:
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    if not body:
        return f"<p>{escape(empty)}</p>"
    head = "".join(f"<th scope=col>{escape(cell)}</th>" for cell in heads)
    return f"<div class=wide><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"


def _bytes(count: int | None) -> str:
    return "" if count is None else format_bytes(count)


def _span(seconds: float) -> str:
    """Format a duration with its two largest units among days, hours, minutes and seconds."""
    if seconds < 60:
        return format_seconds(seconds)
    minutes, hours = int(seconds) // 60, int(seconds) // 3600
    if hours < 1:
        return f"{minutes} min {int(seconds) % 60} s"
    return f"{hours} h {minutes % 60} min" if hours < 24 else f"{hours // 24} d {hours % 24} h"
