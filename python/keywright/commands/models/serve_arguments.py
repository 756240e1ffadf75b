"""Arguments of ``keywright serve``, by group."""

import argparse
from pathlib import Path

from keywright.commands.helpers.errors import CommandError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "folders",
        type=Path,
        metavar="MODEL",
        nargs="+",
        help="folder that keywright compile made, or a saved search index; several are different models, or "
        "versions of one, the newest first",
    )
    for add in (_add_network, _add_storage, _add_accounts, _add_workers, _add_ending):
        add(parser)


def _add_network(parser: argparse.ArgumentParser) -> None:
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


def _add_storage(parser: argparse.ArgumentParser) -> None:
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


def _add_accounts(parser: argparse.ArgumentParser) -> None:
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
        help="a tenant that may open /admin and read /metrics; without accounts, operator.key of the state "
        "folder opens /admin on this machine, and anyone may read /metrics",
    )
    accounts.add_argument(
        "--quotas", type=Path, help="file of the tenants' quotas: stored bytes, and processor seconds per day"
    )


def _add_workers(parser: argparse.ArgumentParser) -> None:
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
    workers.add_argument(
        "--memory",
        metavar="SIZE",
        help="memory budget of the server and its workers, e.g. 8GB, or of each replica on other machines "
        "(default: 80 %% of the free memory)",
    )


def _add_ending(parser: argparse.ArgumentParser) -> None:
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


def require(options: argparse.Namespace) -> None:
    """Check numbers, and arguments that go together.

    Raises:
        CommandError: one is wrong.
    """
    if not 0 <= options.port < 1 << 16:
        raise CommandError(f"--port {options.port} is out of range; ports are 0 to 65535")
    if options.clients < 1:
        raise CommandError(f"--clients {options.clients} is too small; use at least 1")
    if not options.expiry > 0.0:
        raise CommandError(f"--expiry {options.expiry} is not a positive number; give seconds above 0")
    if options.workers < 1:
        raise CommandError(f"--workers {options.workers} is too small; use at least 1")
    if not 0.0 <= options.drain < float("inf"):
        raise CommandError(f"--drain {options.drain} is negative; give seconds from 0 on")
    if (options.certificate is None) != (options.certificate_key is None):
        raise CommandError("--certificate and --certificate-key go together; give both")
