"""Serve compiled models over HTTP to clients that keep their secret keys.

By default the server listens on the loopback only. Before you let others reach it with --host, give it a
certificate or a TLS proxy, and authenticate clients with --accounts or --oidc-issuer. Keys of clients are
kept under --state until they are deleted or have been idle for --expiry seconds. After a restart, interrupted
uploads resume and accepted evaluations run. SIGTERM and ctrl-C end the server after the running evaluations
(--drain), a second one at once. SIGHUP reloads the certificate and the accounts.
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

from keywright._units import format_bytes, format_seconds
from keywright.commands.helpers.errors import CommandError
from keywright.commands.helpers.memory import add_memory_argument, memory_budget
from keywright.commands.terminal import Terminal
from keywright.errors import ConfigurationError
from keywright.plan.memory import default_budget, resident_bytes
from keywright.serve import Service, ServiceLimits, StorageAddresses, Workers, load_page, load_served, logs
from keywright.serve.tenants import Accounts, Quotas

if TYPE_CHECKING:
    from keywright.serve import Server


LOOPBACK = ("127.0.0.1", "::1", "localhost")

UPLOADS_BYTES = 64 << 20
"""Bytes of uploads in the memory of the listening process."""

EXAMPLE = "keywright serve served --state state"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "folders",
        type=Path,
        metavar="MODEL",
        nargs="+",
        help="folder of keywright compile, or of a saved search index; several are different models, or "
        "versions of one, the newest first",
    )
    network = parser.add_argument_group("network")
    network.add_argument(
        "--host", metavar="ADDRESS", default="127.0.0.1", help="address to listen on (default: 127.0.0.1)"
    )
    network.add_argument("--port", type=int, default=8700, help="port; 0 for any free port (default: 8700)")
    network.add_argument(
        "--name",
        metavar="HOST",
        action="append",
        default=[],
        help="a host name by which browsers reach this server",
    )
    network.add_argument("--page", type=Path, help="folder of a page to serve with the model")
    network.add_argument(
        "--certificate", type=Path, metavar="FILE", help="PEM file of the certificate chain: speak TLS"
    )
    network.add_argument("--certificate-key", type=Path, metavar="FILE", help="PEM file of its private key")
    network.add_argument(
        "--proxy",
        metavar="ADDRESS",
        action="append",
        default=[],
        help="address or network of a proxy whose X-Forwarded-For and -Proto are trusted",
    )
    storage = parser.add_argument_group("storage")
    storage.add_argument(
        "--state", type=Path, help="folder of the clients' keys and evaluations (default: a temporary one)"
    )
    storage.add_argument(
        "--objects",
        metavar="s3://BUCKET/PREFIX",
        help="object storage for keys and evaluations; the AWS_* environment variables give endpoint and "
        "credentials",
    )
    storage.add_argument(
        "--records",
        metavar="postgresql://USER@HOST/NAME",
        help="database for records; the environment variable PGPASSWORD gives its password",
    )
    storage.add_argument(
        "--clients", type=int, default=16, help="maximum number of key sets per tenant (default: 16)"
    )
    storage.add_argument(
        "--expiry",
        type=float,
        default=3600.0,
        help="seconds after which unused keys are deleted (default: 3600)",
    )
    storage.add_argument(
        "--audit", type=Path, help="file that records each use of keys (default: audit.jsonl of the state)"
    )
    accounts = parser.add_argument_group("accounts")
    accounts.add_argument(
        "--accounts",
        type=Path,
        help="file of tenants and digests of their API keys (default: anyone has access)",
    )
    accounts.add_argument(
        "--oidc-issuer", metavar="URL", help="accept bearer tokens of this OpenID Connect issuer"
    )
    accounts.add_argument("--oidc-audience", metavar="NAME", help="audience of this server in such tokens")
    accounts.add_argument(
        "--oidc-claim", metavar="CLAIM", default="sub", help="claim that names the tenant (default: sub)"
    )
    accounts.add_argument(
        "--admin",
        metavar="TENANT",
        action="append",
        default=[],
        help="a tenant that may open /admin; without accounts, operator.key of the state folder opens it "
        "on this machine",
    )
    accounts.add_argument(
        "--quotas", type=Path, help="file of the tenants' quotas: stored bytes, and processor seconds per day"
    )
    workers = parser.add_argument_group("workers")
    workers.add_argument(
        "--workers",
        type=int,
        default=1,
        help="number of worker processes, each with all threads (default: 1)",
    )
    workers.add_argument(
        "--ray",
        metavar="ADDRESS",
        help="evaluate on replicas on this Ray cluster, whose machines share --state; local starts a cluster",
    )
    workers.add_argument(
        "--replicas",
        metavar="LEAST[:MOST]",
        default="1",
        help="with --ray: number of replicas, scaled between these limits (default: 1)",
    )
    workers.add_argument(
        "--replica-cpus", type=int, default=1, help="with --ray: processors of each replica (default: 1)"
    )
    ending = parser.add_argument_group("logs and shutdown")
    ending.add_argument(
        "--log-format",
        choices=("text", "json"),
        default="text",
        help="text or JSON lines (default: text)",
    )
    ending.add_argument(
        "--drain",
        type=float,
        default=30.0,
        help="seconds that running evaluations have at shutdown; the next process runs the others "
        "(default: 30)",
    )
    add_memory_argument(workers)


def run(options: argparse.Namespace, terminal: Terminal) -> None:
    """Serve until ctrl-C or SIGTERM."""
    # Imported here, so that other commands do not need these packages.
    from keywright.serve import Server

    if not 0 <= options.port < 1 << 16:
        raise CommandError(f"--port {options.port} is out of range; ports are 0 to 65535")
    if options.clients < 1:
        raise CommandError(f"--clients {options.clients} is too small; use at least 1")
    if not options.expiry > 0.0:
        raise CommandError(f"--expiry {options.expiry} is not a positive number; give seconds above 0")
    if options.workers < 1:
        raise CommandError(f"--workers {options.workers} is too small; use at least 1")
    processes, start = _workers(options)
    if not 0.0 <= options.drain < float("inf"):
        raise CommandError(f"--drain {options.drain} is negative; give seconds from 0 on")
    if (options.certificate is None) != (options.certificate_key is None):
        raise CommandError("--certificate and --certificate-key go together; give both")
    certificate = None if options.certificate is None else (options.certificate, options.certificate_key)
    accounts = _accounts(options)
    if options.log_format == "json":
        logs.log_json()
    event = terminal.note if options.log_format == "text" else logs.log_event

    def progress(what: str) -> AbstractContextManager[object]:
        return terminal.progress(what, None) if options.log_format == "text" else nullcontext()

    models = [load_served(folder) for folder in options.folders]
    page = {} if options.page is None else load_page(options.page)
    with progress("planning memory"):
        own = resident_bytes() + UPLOADS_BYTES
        given = memory_budget(options)
        total = (default_budget() if given is None else given) - own
        # There must be room for the keys of one client; all remaining memory is for keys.
        largest = max(model.resident_key_bytes for model in models)
        budget = max(0, total - largest) // (processes * len(models))
        plans = [model.plan_service(budget, resident_bytes()) for model in models]
        key_memory = total - processes * sum(plan.memory.total for plan in plans)
    with _state(options.state) as state:
        for model, planned in zip(models, plans, strict=True):
            event(f"{model.name}: {model.parameters!r}")
            event(f"needs at most {planned.memory.describe()}; {planned.explain()}")
        event(f"{format_bytes(key_memory)} for the keys of clients")
        workers = start(state, key_memory)
        service = Service(
            models,
            state,
            on_event=event,
            workers=workers,
            accounts=accounts,
            limits=ServiceLimits(capacity=options.clients, expiry=options.expiry, budget=budget),
            quotas=None if options.quotas is None else Quotas.load(options.quotas),
            addresses=StorageAddresses(objects=options.objects, records=options.records, audit=options.audit),
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
            event(f"connections to {options.host} are not encrypted: see --certificate and --proxy")
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
                    f"{server.url} serves {model.name}, {format_bytes(model.manifest.keys.size)} of keys per "
                    f"client, model {model.manifest.hash}"
                )
            server.serve_forever()
        service.close()
        workers.close()


def _workers(options: argparse.Namespace) -> tuple[int, Callable[[Path, int], Workers]]:
    """Return the number of evaluating processes within --memory, and a function that starts them for a state
    folder and a budget of keys."""
    if options.ray is None:
        return options.workers, lambda state, key_memory: Workers(options.workers, key_memory)
    least, _, most = options.replicas.partition(":")
    numbers = [least, most or least]
    if not all(number.isascii() and number.isdigit() and len(number) < 7 for number in numbers) or not (
        1 <= int(numbers[0]) <= int(numbers[1])
    ):
        raise CommandError(
            f"--replicas {options.replicas} is malformed; write LEAST or LEAST:MOST, 1 or more"
        )
    if options.replica_cpus < 1:
        raise CommandError(f"--replica-cpus {options.replica_cpus} is too small; use at least 1")
    if options.state is None:
        raise CommandError("--ray needs --state; name a folder that all machines have under that name")
    # Imported here, so that nothing else needs Ray.
    from keywright.serve.cluster import RayWorkers, Replicas

    # On other machines --memory is the budget of a replica.
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
    """Return the accounts; None to let anyone in."""
    if (options.oidc_issuer is None) != (options.oidc_audience is None):
        raise CommandError("--oidc-issuer and --oidc-audience go together; give both")
    if options.accounts is None and options.oidc_issuer is None:
        if options.admin:
            raise CommandError("--admin names a tenant; give --accounts or --oidc-issuer, too")
        return None
    issuer = None
    if options.oidc_issuer is not None:
        # Imported here, because PyJWT and its dependencies are only for servers with an issuer.
        from keywright.serve.tenants import Issuer

        issuer = Issuer(options.oidc_issuer, options.oidc_audience, options.oidc_claim)
    return Accounts.load(options.accounts, issuer, options.admin)


@contextmanager
def _signals(
    server: "Server", service: Service, options: argparse.Namespace, event: Callable[[str], object]
) -> Iterator[None]:
    """End `serve_forever` at ctrl-C and SIGTERM after the running evaluations or ``--drain`` seconds, at a
    second signal at once; reload the certificate and the accounts at SIGHUP."""
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
            event("the certificate and the accounts have been reloaded")
        except ConfigurationError as error:
            event(f"the certificate and the accounts stay as they were: {error}")

    handlers = {signal.SIGINT: stop, signal.SIGTERM: stop}
    if sys.platform != "win32":
        handlers[signal.SIGHUP] = renew
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
