"""The operator's page: one HTML document without scripts, forms or external resources."""

import base64
import hashlib
import secrets
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib.resources import files
from ipaddress import ip_address

from starlette.requests import Request
from starlette.responses import HTMLResponse

from keywright._core import __version__
from keywright._units import format_bytes, format_seconds
from keywright.errors.service import UnauthorizedError
from keywright.serve.overview import Overview
from keywright.serve.storage.state_folder import OPERATOR_KEY
from keywright.serve.tenants.accounts import bearer

REFRESH_S = 10

HASH_DIGITS = 8
"""Digits of a hash that are shown; a browser shows all of them on hovering."""

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
    queue, ended = overview.queue, overview.ended
    full = queue.waiting >= queue.limit
    badge, kind = (
        ("Stopping", "stop") if overview.draining else ("Queue full", "full") if full else ("Ready", "ready")
    )
    says = (
        "running evaluations end, and nothing new is accepted"
        if overview.draining
        else "new evaluations are refused until one ends"
        if full
        else "accepting requests"
    )
    evaluations = _facts(
        {
            "Running": str(queue.running),
            "Waiting": f"{queue.waiting} of at most {queue.limit}",
            "Longest wait": _span(queue.oldest) if queue.waiting else "-",
            "Done": str(ended.done),
            "Failed": str(ended.failed),
            "Median time": "-" if ended.median is None else format_seconds(ended.median),
            "99 % within": "-" if ended.slow is None else format_seconds(ended.slow),
        }
    )
    server = _facts(
        {
            "Version": __version__,
            "Running for": _span(overview.uptime),
            "Key sets in memory": f"{overview.keys.count}, {format_bytes(overview.keys.size)}",
        }
    )
    models = _table(
        ("Model", "Hash", "Size of a key set", "Key sets"),
        (
            (line.name, _Hash(line.model), format_bytes(line.key_bytes), str(line.key_sets))
            for line in overview.models
        ),
        text=2,
    )
    tenants = _table(
        ("Tenant", "Stored", "Key sets", "Uploading", "Waiting", "Running"),
        (
            (
                line.name or "Without an account",
                format_bytes(line.stored_bytes),
                *map(str, (line.complete, line.incomplete, line.waiting, line.running)),
            )
            for line in overview.tenants
        ),
        empty="No tenant has keys here.",
    )
    machines = _table(
        ("Machine", "Processors", "Load", "Free memory", "Free disk", "Workers", "Memory in use"),
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
        f"<meta http-equiv=refresh content={REFRESH_S}><title>Keywright: {badge}</title>"
        f"<style>{STYLE}</style></head><body><main><h1>Keywright server</h1>"
        f'<p><span class="badge {kind}">{badge}</span> {says}</p>'
        f"<div class=pair><section><h2>Evaluations</h2>{evaluations}</section>"
        f"<section><h2>Server</h2>{server}</section></div>"
        f"<section><h2>Models</h2>{models}</section><section><h2>Tenants</h2>{tenants}</section>"
        f"<section><h2>Machines</h2>{machines}</section>"
        f"<p>Refreshes every {REFRESH_S} s. Prometheus: <a href=/metrics>/metrics</a>.</p>"
        "</main></body></html>\n"
    )


class _Hash(str):
    """A hash: the page shows its beginning, and the rest on hovering."""

    __slots__ = ()


def _cell(tag: str, text: str) -> str:
    if not isinstance(text, _Hash):
        return f"<{tag}>{escape(text)}</td>"
    return f'<{tag} title="{escape(text)}"><code>{escape(text[:HASH_DIGITS])}&hellip;</code></td>'


def _facts(rows: Mapping[str, str]) -> str:
    """Return a table of names and values."""
    body = "".join(f"<tr><th scope=row>{escape(k)}</th><td>{escape(v)}</td></tr>" for k, v in rows.items())
    return f"<table class=facts>{body}</table>"


def _table(
    heads: Sequence[str], rows: Iterable[Sequence[str]], empty: str = "There is none.", text: int = 1
) -> str:
    """Return a table whose first ``text`` columns are text; the others are numbers, to the right."""
    tags = ["td"] * text + ["td class=number"] * (len(heads) - text)
    body = "".join("<tr>" + "".join(map(_cell, tags, row)) + "</tr>" for row in rows)
    if not body:
        return f"<p>{escape(empty)}</p>"
    head = "".join(
        f"<th scope=col{tag[2:]}>{escape(cell)}</th>" for tag, cell in zip(tags, heads, strict=True)
    )
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
