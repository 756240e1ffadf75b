"""Limits of a client on the choices of a server, or of the author of a folder.

A server decides the ring, the distribution of the secret key, and the evaluation keys that a client makes.
`Demands` is the client's own judgement of this choice, before a secret or a key exists.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import SplitResult

from keywright._core import Parameters, maximum_log_qp
from keywright._units import format_bytes
from keywright.errors import ParameterError, SecurityError
from keywright.errors.choices import require_integer
from keywright.errors.service import LimitError, StorageError
from keywright.plan.keys.execution import PlanExecution

KEY_BYTES = 32 << 30
"""Default of the most bytes of keys that a client makes for a server."""

KEY_COUNT = 4096
"""Default of the most keys that a client makes."""

MESSAGE_BYTES = 1 << 30
"""Most bytes of the ciphertexts of one request, or of its answer."""

WEIGHT = re.compile(r"ternary of weight (\d+)")
PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True)
class Demands:
    """The limits of a client.

    Args:
        insecure: whether parameters below 128 bits are accepted, for experiments on made-up data.
        key_bytes: most bytes of keys.
        key_count: most keys.

    Raises:
        ParameterError: a limit is below 1, or not an integer.
    """

    insecure: bool = False
    key_bytes: int = KEY_BYTES
    key_count: int = KEY_COUNT

    def __post_init__(self) -> None:
        for name in ("key_bytes", "key_count"):
            value = require_integer(name, getattr(self, name))
            if value < 1:
                raise ParameterError(
                    f"{name}={value} allows no key; name a number above 0", what=name, value=value, minimum=1
                )

    def require_secure(self, parameters: Parameters) -> None:
        """Refuse parameters whose keys are not checked for 128 bits of security.

        The bound of the ciphertext modulus is looked up here too, whatever the parameters say of themselves.

        Raises:
            SecurityError: the parameters have the `insecure` switch, exceed the bound, or have a secret for
                which there is no bound.
        """
        if self.insecure:
            return
        secret = parameters.secret_distribution
        weight = WEIGHT.fullmatch(secret)
        bound = None
        try:
            bound = maximum_log_qp(parameters.log_n, int(weight[1]) if weight else None)
        except SecurityError:
            why = f"there is no bound for a secret {secret} in a ring of degree 2^{parameters.log_n}"
        else:
            if parameters.insecure:
                why = "they switch the check of their keys off"
            elif parameters.log_q > bound:
                why = f"their modulus has {parameters.log_q:.1f} bits, and at most {bound} are secure"
            else:
                return
        raise SecurityError(
            f"the parameters have less than 128 bits of security ({why}), so their author may be able to "
            "read what is encrypted; use another model, or insecure=True for made-up data",
            object="the parameters",
            modulus_bits=parameters.log_q,
            bound=bound,
            log_n=parameters.log_n,
            secret=secret,
        )

    def require_plan(self, execution: PlanExecution) -> None:
        """Refuse a plan with more keys than the limits; errors as for `require_keys`."""
        masters = execution.plan.masters
        extra = 0 if masters is None else len(masters.automorphisms) * masters.shape.stored_bytes
        specs = execution.key_specs
        count = len(specs) + (0 if masters is None else len(masters.automorphisms))
        self.require_keys(count, extra + sum(spec.bytes for spec in specs))

    def require_keys(self, count: int, size: int) -> None:
        """Refuse more keys than the limits allow, before one is made.

        Args:
            count: number of keys.
            size: their bytes.

        Raises:
            LimitError: they are too many, or too large.
        """
        if count > self.key_count:
            raise LimitError(
                f"{count} keys are requested, and this client makes at most {self.key_count}; raise the "
                f"limit with key_count={count} if you expect this of the model",
                what="key_count",
                value=count,
                maximum=self.key_count,
                code="demand",
            )
        if size > self.key_bytes:
            raise LimitError(
                f"{size} bytes of keys ({format_bytes(size)}) are requested, and this client makes at most "
                f"{self.key_bytes} ({format_bytes(self.key_bytes)}); raise the limit with key_bytes={size} "
                "if you expect this of the model",
                what="key_bytes",
                value=size,
                maximum=self.key_bytes,
                code="demand",
            )


def require_message(what: str, size: int) -> None:
    """Refuse a request or an answer that is larger than any model's.

    Raises:
        LimitError: it has more than `MESSAGE_BYTES`.
    """
    if size > MESSAGE_BYTES:
        raise LimitError(
            f"{what} would have {size} bytes, and at most {MESSAGE_BYTES} are sent or read; use another "
            "model",
            what="message_bytes",
            value=size,
            maximum=MESSAGE_BYTES,
            code="demand",
        )


def require_address(url: SplitResult, own: SplitResult, allowed: Iterable[str]) -> None:
    """Refuse to write to an address of neither the server itself nor an allowed host.

    Args:
        url: the address.
        own: the server's.
        allowed: host names, or ``host:port``; a name alone allows the default ports of HTTP and HTTPS.

    Raises:
        StorageError: neither; or the server is asked over HTTPS and the address is not.
    """
    try:
        place = (url.scheme, url.hostname, url.port or PORTS.get(url.scheme))
    except ValueError:
        place = ("", None, None)
    scheme, host, port = place
    if own.scheme == "https" and scheme != "https":
        raise StorageError(
            f"the server asks for keys at {scheme}://{host}, without the encryption of its own address; keys "
            "go to the server itself",
            found=f"{host}:{port}",
            code="foreign_address",
        )
    if scheme in PORTS and host is not None:
        if place == (own.scheme, own.hostname, own.port or PORTS[own.scheme]):
            return
        names = {name.lower() for name in allowed}
        if f"{host}:{port}" in names or (host in names and port == PORTS[scheme]):
            return
    raise StorageError(
        f"the server asks for keys at {scheme}://{host}:{port}, which is not its own address; add "
        f"{host}:{port} to the hosts of direct= if that is its object storage",
        found=f"{host}:{port}",
        code="foreign_address",
    )
