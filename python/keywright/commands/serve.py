"""Serve compiled models to clients that keep their secret: manifests, keys, evaluations, over HTTP.

It listens on the loopback, where nobody else can ask, unless --host says otherwise. Before others can reach
it, give it a certificate or put it behind a proxy that has one, and say who may ask: --accounts, or
--oidc-issuer. Keys of clients are kept under --state until they are deleted or not used for --expiry seconds;
an upload that was interrupted goes on where it was, and what was accepted is evaluated, also after this
process was killed. SIGTERM and ctrl-C end it after the evaluations that run (--drain), a second one at once;
SIGHUP has the certificate and the accounts read again.
"""

import argparse
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from keywright._terminal import Terminal
from keywright._units import format_bytes, format_seconds
from keywright.plan.memory.machine import resident_bytes
from keywright.serve import Model, Service, Workers, load_page, logs
from keywright.serve.accounts import Accounts
from keywright.serve.errors import AccountsFileError, CertificateError
from keywright.serve.quotas import Quotas

from .helpers.errors import CommandError
from .helpers.memory import add_memory_argument, memory_budget

if TYPE_CHECKING:
    from keywright.serve import Server


LOOPBACK = ("127.0.0.1", "::1", "localhost")

UPLOADS_BYTES = 64 << 20
"""What uploads take of the process that listens, beside what it has at first."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "folders",
        type=Path,
        metavar="MODEL",
        nargs="+",
        help="folder of keywright compile; several are models, or versions of one, the newest first",
    )
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default 127.0.0.1)")
    parser.add_argument("--port", type=int, default=8700, help="port; 0 for any that is free (default 8700)")
    parser.add_argument(
        "--state", type=Path, help="folder of the clients' keys and evaluations; a temporary one by default"
    )
    parser.add_argument(
        "--objects",
        metavar="s3://BUCKET/PREFIX",
        help="object storage for keys and evaluations; AWS_* of the environment say where and whose",
    )
    parser.add_argument(
        "--records",
        metavar="postgresql://USER@HOST/NAME",
        help="database for what is known of them; its password is PGPASSWORD of the environment",
    )
    parser.add_argument(
        "--quotas", type=Path, help="file of what tenants may have: bytes, and processor seconds of a day"
    )
    parser.add_argument(
        "--audit", type=Path, help="file of who used which keys; audit.jsonl of the state by default"
    )
    parser.add_argument(
        "--workers", type=int, default=1, help="processes that evaluate, each on all threads (default 1)"
    )
    parser.add_argument(
        "--ray",
        metavar="ADDRESS",
        help="have replicas on this Ray cluster evaluate, which see --state; local starts a cluster",
    )
    parser.add_argument(
        "--replicas",
        metavar="LEAST[:MOST]",
        default="1",
        help="with --ray: how many, as many as are needed between these (default 1)",
    )
    parser.add_argument(
        "--replica-cpus", type=int, default=1, help="with --ray: processors of each replica (default 1)"
    )
    parser.add_argument(
        "--accounts", type=Path, help="file of tenants and digests of their API keys; anybody may ask without"
    )
    parser.add_argument(
        "--oidc-issuer", metavar="URL", help="take bearer tokens of this OpenID Connect issuer"
    )
    parser.add_argument("--oidc-audience", metavar="NAME", help="name of this server in such tokens")
    parser.add_argument(
        "--oidc-claim", metavar="CLAIM", default="sub", help="the claim that names the tenant (default sub)"
    )
    parser.add_argument(
        "--admin",
        metavar="TENANT",
        action="append",
        default=[],
        help="a tenant who may see /admin; without accounts it is for the loopback",
    )
    parser.add_argument("--certificate", type=Path, metavar="FILE", help="certificate chain, PEM: speak TLS")
    parser.add_argument("--certificate-key", type=Path, metavar="FILE", help="its private key, PEM")
    parser.add_argument(
        "--proxy",
        metavar="ADDRESS",
        action="append",
        default=[],
        help="address or network of a proxy whose X-Forwarded-For and -Proto are believed",
    )
    parser.add_argument(
        "--log-format", choices=("text", "json"), default="text", help="lines for people, or JSON lines"
    )
    parser.add_argument(
        "--drain",
        type=float,
        default=30.0,
        help="seconds that evaluations have when the server ends; others are left to the next (default 30)",
    )
    parser.add_argument("--page", type=Path, help="folder of a page to serve with the model")
    parser.add_argument("--clients", type=int, default=16, help="key sets of a tenant at most (default 16)")
    parser.add_argument(
        "--expiry",
        type=float,
        default=3600.0,
        help="seconds after which keys that are not used are deleted (default 3600)",
    )
    parser.add_argument(
        "--name", action="append", default=[], help="a name under which browsers reach this server"
    )
    add_memory_argument(parser)


def run(options: argparse.Namespace, terminal: Terminal) -> None:
    """Serve until ctrl-C or SIGTERM."""
    # Here, so that the other commands need nothing of it.
    from keywright.serve import Server

    if not 0 <= options.port < 1 << 16:
        raise CommandError(f"--port {options.port}: ports are 0 to 65535")
    if options.clients < 1:
        raise CommandError(f"--clients {options.clients}: at least 1 is needed")
    if not options.expiry > 0.0:
        raise CommandError(f"--expiry {options.expiry}: a number of seconds above 0 is needed")
    if options.workers < 1:
        raise CommandError(f"--workers {options.workers}: at least 1 is needed")
    processes, start = _workers(options)
    if not 0.0 <= options.drain < float("inf"):
        raise CommandError(f"--drain {options.drain}: a number of seconds from 0 on is needed")
    if (options.certificate is None) != (options.certificate_key is None):
        raise CommandError("--certificate and --certificate-key go together")
    certificate = None if options.certificate is None else (options.certificate, options.certificate_key)
    accounts = _accounts(options)
    if options.log_format == "json":
        logs.log_json()
    event = terminal.note if options.log_format == "text" else logs.log_event

    def progress(what: str) -> AbstractContextManager[object]:
        return terminal.progress(what, None) if options.log_format == "text" else nullcontext()

    models = [Model.load(folder) for folder in options.folders]
    page = {} if options.page is None else load_page(options.page)
    with progress("planning memory"):
        own = resident_bytes() + UPLOADS_BYTES
        total = memory_budget(options) - own
        # One client's keys are the least that there must be room for; all that is left is for keys.
        largest = max(model.resident_key_bytes for model in models)
        budget = max(0, total - largest) // (processes * len(models))
        plans = [model.plan_process(budget, resident_bytes()) for model in models]
        key_memory = total - processes * sum(plan.memory.total for plan in plans)
    with _state(options.state) as state:
        for model, planned in zip(models, plans, strict=True):
            event(f"{model.name}: {model.parameters!r}")
            event(f"at most {planned.memory.describe()}; {planned.explain()}")
        event(f"{format_bytes(key_memory)} for the keys of clients")
        workers = start(state, key_memory)
        service = Service(
            models,
            state,
            capacity=options.clients,
            expiry=options.expiry,
            on_event=event,
            workers=workers,
            budget=budget,
            accounts=accounts,
            objects=options.objects,
            records=options.records,
            quotas=None if options.quotas is None else Quotas.load(options.quotas),
            audit=options.audit,
        )
        with progress("encoding"):
            service.prepare()
        names = frozenset(name.lower() for name in options.name)

        def told(method: str, path: str, status: int, received: int, sent: int, seconds: float) -> None:
            sizes = f"{format_bytes(received)} in, {format_bytes(sent)} out"
            terminal.note(f"{method} {path} {status}, {sizes}, {format_seconds(seconds)}")

        server = Server(
            service,
            host=options.host,
            port=options.port,
            page=page,
            names=names,
            on_request=told if options.log_format == "text" else logs.log_request,
            certificate=certificate,
            proxies=options.proxy,
        )
        if options.host not in LOOPBACK and certificate is None and not options.proxy:
            event(f"nothing encrypts connections to {options.host}: see --certificate and --proxy")
        with server, _signals(server, service, options, event):
            if terminal.json:
                memory = {
                    "predicted_peak_bytes": total + own - key_memory + largest,
                    "key_memory": key_memory,
                    "memory": [plan.memory.parts() for plan in plans],
                }
                hashes = [model.manifest.hash for model in models]
                terminal.record({"url": server.url, "model": hashes[0], "models": hashes, **memory})
            for model in models:
                event(
                    f"{server.url} serves {model.name}, {format_bytes(model.manifest.key_bytes)} of keys per "
                    f"client, model {model.manifest.hash}"
                )
            server.serve_forever()
        service.close()
        workers.close()


def _workers(options: argparse.Namespace) -> tuple[int, Callable[[Path, int], Workers]]:
    """How many processes evaluate within --memory, and what starts them for a folder of state and bytes of
    keys."""
    if options.ray is None:
        return options.workers, lambda state, key_memory: Workers(options.workers, key_memory)
    least, _, most = options.replicas.partition(":")
    numbers = [least, most or least]
    if not all(number.isascii() and number.isdigit() and len(number) < 7 for number in numbers) or not (
        1 <= int(numbers[0]) <= int(numbers[1])
    ):
        raise CommandError(f"--replicas {options.replicas}: LEAST or LEAST:MOST is needed, 1 or more")
    if options.replica_cpus < 1:
        raise CommandError(f"--replica-cpus {options.replica_cpus}: at least 1 is needed")
    if options.state is None:
        raise CommandError("--ray needs --state: a folder that all machines have under that name")
    # Here, so that nothing else needs Ray.
    from keywright.serve.cluster import RayWorkers, Replicas

    # On other machines --memory is that of a replica.
    processes = int(numbers[1]) if options.ray == "local" else 1

    def start(state: Path, key_memory: int) -> Workers:
        replicas = Replicas(int(numbers[0]), int(numbers[1]), options.replica_cpus, key_memory // processes)
        return RayWorkers(options.ray, state, replicas)

    return processes, start


@contextmanager
def _state(folder: Path | None) -> Iterator[Path]:
    if folder is not None:
        yield folder
        return
    with tempfile.TemporaryDirectory(prefix="keywright.", ignore_cleanup_errors=True) as temporary:
        yield Path(temporary)


def _accounts(options: argparse.Namespace) -> Accounts | None:
    """Who may ask; None for anybody."""
    if (options.oidc_issuer is None) != (options.oidc_audience is None):
        raise CommandError("--oidc-issuer and --oidc-audience go together")
    if options.accounts is None and options.oidc_issuer is None:
        if options.admin:
            raise CommandError("--admin names a tenant: give --accounts or --oidc-issuer, too")
        return None
    issuer = None
    if options.oidc_issuer is not None:
        # Here, as PyJWT and what it needs are for those who have an issuer.
        from keywright.serve.oidc import Issuer

        issuer = Issuer(options.oidc_issuer, options.oidc_audience, options.oidc_claim)
    return Accounts.load(options.accounts, issuer, options.admin)


@contextmanager
def _signals(
    server: "Server", service: Service, options: argparse.Namespace, event: Callable[[str], object]
) -> Iterator[None]:
    """End `serve_forever` at ctrl-C and SIGTERM, after the evaluations that run or after so many seconds, and
    at the second one at once; read the certificate and the accounts again at SIGHUP."""
    ending = threading.Event()

    def end(limit: float) -> None:
        service.drain(limit)
        server.shutdown()

    def stop(number: int, frame: FrameType | None) -> None:
        threading.Thread(target=end, args=(0.0 if ending.is_set() else options.drain,), daemon=True).start()
        ending.set()

    def renew(number: int, frame: FrameType | None) -> None:
        try:
            server.renew()
            service.accounts = _accounts(options)
            event("the certificate and the accounts are read again")
        except (CertificateError, AccountsFileError) as error:
            event(f"what was read before stays: {error}")

    handlers = {signal.SIGINT: stop, signal.SIGTERM: stop}
    if sys.platform != "win32":
        handlers[signal.SIGHUP] = renew
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
