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
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from keywright._processes import temporary_folder
from keywright._units import format_bytes, format_seconds
from keywright.commands.helpers.errors import CommandError
from keywright.commands.helpers.memory import memory_budget
from keywright.commands.terminal import Terminal
from keywright.errors import ConfigurationError
from keywright.plan.memory import default_budget, resident_bytes
from keywright.serve import (
    Served,
    Service,
    ServiceLimits,
    StorageAddresses,
    Workers,
    load_page,
    load_served,
    logs,
)
from keywright.serve.tenants import Accounts, Quotas
from keywright.serve.uploads import connections_within, listening_bytes

from .serve_arguments import add_arguments, require

if TYPE_CHECKING:
    from keywright.serve import Server


LOOPBACK = ("127.0.0.1", "::1", "localhost")

__all__ = ["EXAMPLE", "add_arguments", "run"]

EXAMPLE = "keywright serve served --state state"


def run(options: argparse.Namespace, terminal: Terminal) -> None:
    """Serve until ctrl-C or SIGTERM."""
    if options.log_format == "json":
        logs.log_json()
    event = terminal.note if options.log_format == "text" else logs.log_event
    with _signals(options, event) as begin:
        _serve(options, terminal, event, begin)


def _serve(
    options: argparse.Namespace,
    terminal: Terminal,
    event: Callable[[str], object],
    begin: Callable[["Server", Service], None],
) -> None:
    # Imported here, so that other commands do not need these packages.
    from keywright.serve import Server

    require(options)
    processes, start = _workers(options)
    certificate = None if options.certificate is None else (options.certificate, options.certificate_key)
    accounts = _accounts(options)

    def progress(what: str) -> AbstractContextManager[object]:
        return terminal.progress(what, None) if options.log_format == "text" else nullcontext()

    models = [load_served(folder) for folder in options.folders]
    page = {} if options.page is None else load_page(options.page)
    with progress("planning memory"):
        given = memory_budget(options)
        memory = MemoryPlan.of(models, processes, default_budget() if given is None else given)
    with _state(options.state) as state:
        for model, text in zip(models, memory.texts, strict=True):
            event(f"{model.name}: {model.parameters!r}")
            event(text)
        event(f"{format_bytes(memory.keys)} for the keys of clients")
        workers = start(state, memory.keys)
        service = Service(
            models,
            state,
            on_event=event,
            workers=workers,
            accounts=accounts,
            limits=ServiceLimits(options.clients, options.expiry, memory.each, memory.connections),
            quotas=None if options.quotas is None else Quotas.load(options.quotas),
            addresses=StorageAddresses(objects=options.objects, records=options.records, audit=options.audit),
        )
        with progress("encoding"):
            service.prepare()
        server = Server(
            service,
            host=options.host,
            port=options.port,
            page=page,
            names=frozenset(name.lower() for name in options.name),
            on_request=_request_log(terminal) if options.log_format == "text" else logs.log_request,
            certificate=certificate,
            proxies=options.proxy,
        )
        if options.host not in LOOPBACK and certificate is None and not options.proxy:
            event(f"connections to {options.host} are not encrypted: see --certificate and --proxy")
        with server:
            begin(server, service)
            hashes = [model.hash for model in models]
            if terminal.json:
                terminal.record({"url": server.url, "model": hashes[0], "models": hashes, **memory.to_json()})
            for model in models:
                event(
                    f"{server.url} serves {model.name}, {format_bytes(model.keys.size)} of keys per client, "
                    f"model {model.hash}"
                )
            server.serve_forever()
        service.close()
        workers.close()


def _request_log(terminal: Terminal) -> Callable[[str, str, int, int, int, float], None]:
    """Return what shows requests."""

    def told(method: str, path: str, status: int, received: int, sent: int, seconds: float) -> None:
        sizes = f"{format_bytes(received)} in, {format_bytes(sent)} out"
        terminal.note(f"{method} {path} {status}, {sizes}, {format_seconds(seconds)}")

    return told


@dataclass(frozen=True)
class MemoryPlan:
    """The memory of all processes, in bytes.

    Attributes:
        texts: descriptions of a process, for each model.
        parts: its bytes by part.
        each: maximum of a process for a model.
        keys: of clients' keys.
        connections: number of connections for which there is memory.
        peak: predicted peak.
    """

    texts: Sequence[str]
    parts: Sequence[Mapping[str, int]]
    each: int
    keys: int
    connections: int
    peak: int

    @staticmethod
    def of(models: Sequence[Served], processes: int, budget: int) -> "MemoryPlan":
        """Plan the memory of processes for models within a budget of all.

        Raises:
            OutOfMemoryError: the models do not fit.
        """
        connections = connections_within(budget)
        longest = max(model.message.most_bytes for model in models)
        own = resident_bytes() + listening_bytes(longest, connections)
        total = budget - own
        # There must be room for the keys of one client; all remaining memory is for keys.
        largest = max(model.keys.resident_bytes for model in models)
        each = max(0, total - largest) // (processes * len(models))
        plans = [model.plan_service(each, resident_bytes()) for model in models]
        keys = total - processes * sum(plan.memory.total for plan in plans)
        texts = [f"needs at most {plan.memory.describe()}; {plan.explain()}" for plan in plans]
        parts = [plan.memory.parts() for plan in plans]
        return MemoryPlan(texts, parts, each, keys, connections, budget - keys + largest)

    def to_json(self) -> dict[str, object]:
        """Return it for a record."""
        return {
            "predicted_peak_bytes": self.peak,
            "key_memory": self.keys,
            "connections": self.connections,
            "memory": list(self.parts),
        }


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
    with temporary_folder() as temporary:
        yield temporary


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
    options: argparse.Namespace, event: Callable[[str], object]
) -> Iterator[Callable[["Server", Service], None]]:
    """Handle the signals of the command, from its beginning to its end. Yields what is called before
    `serve_forever`: from then on, ctrl-C and SIGTERM end that after the running evaluations or ``--drain``
    seconds, a second signal at once, and SIGHUP reloads the certificate and the accounts. Before, SIGTERM
    ends the command, and SIGHUP waits."""
    serving: list[tuple[Server, Service]] = []
    ending, renewing = threading.Event(), threading.Event()

    def end(limit: float) -> None:
        for server, service in serving:
            service.drain(limit)
            server.shutdown()

    def stop(number: int, frame: FrameType | None) -> None:
        limit = 0.0 if ending.is_set() else options.drain
        ending.set()
        if not serving:
            raise SystemExit(0)
        threading.Thread(target=end, args=(limit,), daemon=True).start()

    def renew(number: int, frame: FrameType | None) -> None:
        renewing.set()
        for server, service in serving:
            try:
                accounts = _accounts(options)
                server.renew()
                service.accounts = accounts
                event("the certificate and the accounts have been reloaded")
            except (ConfigurationError, OSError) as error:
                event(f"the certificate and the accounts stay as they were: {error}")

    def begin(server: "Server", service: Service) -> None:
        if ending.is_set():
            # The exception was lost where Python ignores them, as in a finaliser.
            raise SystemExit(0)
        signal.signal(signal.SIGINT, stop)
        serving.append((server, service))
        if renewing.is_set():
            renew(0, None)

    handlers = {signal.SIGTERM: stop}
    if sys.platform != "win32":
        handlers[signal.SIGHUP] = renew
    before = {signal.SIGINT: signal.getsignal(signal.SIGINT)}
    before |= {number: signal.signal(number, handler) for number, handler in handlers.items()}
    if sys.platform != "win32":
        # `keywright.cli` blocks it while this module is imported.
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGHUP})
    try:
        yield begin
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
