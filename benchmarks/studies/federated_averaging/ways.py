"""Ways of averaging updates: the work of a client, of the server, and of a client with the sum."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path
from typing import Any, Protocol

import keywright as kw
import numpy as np
from harness.console import Console
from harness.measurement.clock import Seconds, timed
from harness.programs.process import PeerProcess
from keywright.federated import ArrayLayout, Encoding, EncryptedSum, EncryptedUpdate, SumKey
from keywright.insecure import ChemEncryptor
from numpy.typing import NDArray

from studies.federated_averaging.grid import Exchange
from studies.federated_averaging.updates import Model

BOUND, WEIGHT = 4.0, 2000
SESSION = bytes(16)
SAMPLE = 48
"""Values of an update that the ways with a ciphertext for each value measure; the rest is extrapolated."""
TENSEAL_ERROR = 2.0**-20
"""TenSEAL states no bound. Its errors are near 2^-28 here."""


@dataclass(frozen=True)
class Round:
    """One round of one way: seconds of every client, of the server and of opening the sum, and bytes.

    Attributes:
        client: until the update is sent.
        server: adding.
        open: one client, from the sum to the average.
        update_bytes: of an update, with what a client sends before it.
        sum_bytes: sent and received for opening.
        exchanges: one client's, each and "all", where the way has more than an update and a sum.
    """

    client: list[Seconds]
    server: Seconds
    open: Seconds
    update_bytes: float
    sum_bytes: float
    exchanges: list[Exchange] = field(default_factory=list)

    def plus(self, other: Round) -> Round:
        """Return the round of the values of both, of the same clients."""

        def both(first: Seconds, second: Seconds) -> Seconds:
            return Seconds(first.wall + second.wall, first.cpu + second.cpu)

        return Round(
            [both(*pair) for pair in zip(self.client, other.client, strict=True)],
            both(self.server, other.server),
            both(self.open, other.open),
            self.update_bytes + other.update_bytes,
            self.sum_bytes + other.sum_bytes,
        )

    def times(self, factor: float) -> Round:
        """Return a round of `factor` times the values."""

        def longer(seconds: Seconds) -> Seconds:
            return Seconds(seconds.wall * factor, seconds.cpu * factor)

        return Round(
            [longer(seconds) for seconds in self.client],
            longer(self.server),
            longer(self.open),
            self.update_bytes * factor,
            self.sum_bytes * factor,
        )


class Way(Protocol):
    """A way of averaging, equal weights."""

    name: str
    extrapolated: bool

    def round(self, updates: list[Model]) -> Round:
        """Average the updates, check the result, and return the costs."""


def flat(arrays: Model) -> NDArray[np.float64]:
    """All values of an update."""
    return np.concatenate([array.ravel() for array in arrays.values()]).astype(np.float64)


def sampled(updates: list[Model]) -> tuple[list[NDArray[np.float64]], float]:
    """The same few values of every update, and how many times more there are."""
    values = [flat(update) for update in updates]
    chosen = np.random.default_rng(4).choice(values[0].size, SAMPLE, replace=False)
    return [v[chosen] for v in values], values[0].size / SAMPLE


def check(name: str, average: NDArray[np.float64], updates: Sequence[Any], allowed: float) -> None:
    """Compare with the average in double precision.

    Raises:
        SystemExit: they are further apart than `allowed`.
    """
    error = np.abs(average - np.mean(updates, 0)).max()
    if not error <= allowed:
        raise SystemExit(f"{name}: the average is off by {error}, above {allowed}")


class Plain:
    """Float32 arrays, as Flower sends them."""

    name = "plain FedAvg"
    extrapolated = False

    def round(self, updates: list[Model]) -> Round:
        """Bytes of the arrays, and their mean in single precision."""
        sent, seconds = each(lambda arrays: b"".join(a.tobytes() for a in arrays.values()), updates)

        def add() -> bytes:
            total = np.zeros(len(sent[0]) // 4, np.float32)
            for update in sent:
                total += np.frombuffer(update, np.float32) / np.float32(len(sent))
            return total.tobytes()

        total, server = timed(add)
        average, opened = timed(lambda: np.frombuffer(total, np.float32).astype(np.float64))
        values = [flat(update) for update in updates]
        # A division and an addition for each, each rounded to 24 bits of at most the largest value.
        allowed = 2 * len(updates) * 2.0**-24 * float(np.abs(values).max())
        check(self.name, average, values, allowed)
        return Round(seconds, server, opened, len(sent[0]), len(total))


class Shared:
    """Keywright with one key of all clients, at the default precision."""

    name = "Keywright, shared key"
    extrapolated = False

    def __init__(self, clients: int) -> None:
        self.encoding = Encoding(bound=BOUND, max_clients=max(clients, 2), max_weight=WEIGHT)
        self.key = SumKey.generate(self.encoding.parameters)

    def encrypt(self, arrays: Model, client: int) -> bytes:
        """Flatten, encode, encrypt, serialise."""
        integers, _ = self.encoding.encode(ArrayLayout.of(arrays).flatten(arrays), WEIGHT)
        return self.key.encrypt(integers, session=SESSION, round=1, client=client, weight=WEIGHT).to_bytes()

    def round(self, updates: list[Model]) -> Round:
        """As the mod and the strategy do."""
        parameters = self.encoding.parameters
        sent, seconds = each(self.encrypt, updates, range(len(updates)))
        total, server = timed(
            lambda: EncryptedSum.of(
                [EncryptedUpdate.from_bytes(update, parameters) for update in sent], parameters
            ).to_bytes()
        )

        def decrypt() -> NDArray[np.float64]:
            parsed = EncryptedSum.from_bytes(total, parameters)
            return self.encoding.decode(self.key.decrypt(parsed), parsed.total_weight)

        average, opened = timed(decrypt)
        count = len(updates)
        allowed = self.encoding.error_bound(count, count * WEIGHT) + 2.0**-50 * BOUND
        check(self.name, average, [flat(update) for update in updates], allowed)
        return Round(seconds, server, opened, len(sent[0]), len(total))


class OneByOne:
    """Keywright's CKKS with a ciphertext for each value, encrypted plainly or with Chem; N = 2^13,
    60-40-40-60."""

    def __init__(self, chem_bits: int | None, *, whole: bool = False) -> None:
        self.extrapolated = not whole
        self.name = "Keywright, a ciphertext a value" if chem_bits is None else f"Chem, {chem_bits} bits"
        self.parameters = kw.Parameters.from_bits(13, [60, 40, 40], [60], 40)
        secret = kw.SecretKey.generate(self.parameters)
        public = kw.KeyGenerator(secret).public_key()
        self.encryptor, self.decryptor = kw.Encryptor(public), kw.Decryptor(secret)
        self.chem: ChemEncryptor | None = None
        self.unit = 0.0
        if chem_bits is not None:
            # Chem's messages are not negative: a value is moved up by the bound, the average down again.
            self.unit = 2 * BOUND / (2**chem_bits - 1)
            self.chem = ChemEncryptor(
                public, chem_bits, acknowledge="Chem does not hide messages", unit=self.unit
            )

    def encrypt(self, values: NDArray[np.float64]) -> list[bytes]:
        """Encode, encrypt, serialise."""
        if self.chem is None:
            return [self.encryptor.encrypt([value], 1).to_bytes() for value in values.tolist()]
        messages = np.rint((np.clip(values, -BOUND, BOUND) + BOUND) / self.unit)
        return [ciphertext.to_bytes() for ciphertext in self.chem.encrypt([int(m) for m in messages])]

    def round(self, updates: list[Model]) -> Round:
        """Of a sample of the values, or of all of them, some at a time: the ciphertexts of a model do not fit
        into memory."""
        if self.extrapolated:
            values, factor = sampled(updates)
            return self.part(values).times(factor)
        pieces = [np.array_split(flat(update), -(-flat(update).size // SAMPLE)) for update in updates]
        return reduce(Round.plus, (self.part(list(values)) for values in zip(*pieces, strict=True)))

    def part(self, values: list[NDArray[np.float64]]) -> Round:
        """Of the same values of every update."""
        sent, seconds = each(self.encrypt, values)
        load = kw.Ciphertext.from_bytes

        def add() -> list[bytes]:
            sums = []
            for parts in zip(*sent, strict=True):
                total = load(parts[0], self.parameters)
                for part in parts[1:]:
                    total = kw.Evaluator(self.parameters).add(total, load(part, self.parameters))
                sums.append(total.to_bytes())
            return sums

        total, server = timed(add)
        parsed = [load(part, self.parameters) for part in total]

        def decrypt() -> list[float]:
            return [float(self.decryptor.decrypt(load(part, self.parameters))[0]) for part in total]

        sums, opened = timed(decrypt)
        shift = 0.0 if self.chem is None else BOUND
        average = np.array(sums) / len(values) - shift
        allowed = max(c.error_bound for c in parsed) / len(values) + self.unit / 2 + 2.0**-40
        check(self.name, average, values, allowed)
        size = sum(map(len, sent[0]))
        return Round(seconds, server, opened, size, sum(map(len, total)))


class TenSeal:
    """TenSEAL in a process of its own: CKKS, N = 8192, 60-40-40-60, scale 2^40, public-key encryption."""

    def __init__(self, console: Console, build: Path, *, packed: bool) -> None:
        self.name = "TenSEAL, a vector a layer" if packed else "TenSEAL, a ciphertext a value"
        self.extrapolated = not packed
        self.process = PeerProcess("tenseal", "peers.tenseal.rounds", build, console)

    def round(self, updates: list[Model]) -> Round:
        """One request; a layer is one vector."""
        values, factor = sampled(updates)
        vectors = [[part.tolist()] for part in values]
        if not self.extrapolated:
            values, factor = [flat(update) for update in updates], 1.0
            vectors = [[array.ravel().tolist() for array in update.values()] for update in updates]
        answer = self.process.ask({"updates": vectors, "packed": not self.extrapolated})
        check(self.name, np.array(answer["average"]), values, TENSEAL_ERROR)
        return Round(
            [Seconds(*seconds) for seconds in answer["client"]],
            Seconds(*answer["server"]),
            Seconds(*answer["open"]),
            answer["update_bytes"],
            answer["sum_bytes"],
        ).times(factor)


def each(work: Any, *arguments: Any) -> tuple[list[Any], list[Seconds]]:
    """Call for every item, each call timed."""
    results, seconds = [], []
    for items in zip(*arguments, strict=True):
        result, took = timed(work, *items)
        results.append(result)
        seconds.append(took)
    return results, seconds
