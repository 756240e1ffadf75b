"""Answers of a server that are looked at: what was computed is not seen, but what is known can be asked."""

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from keywright.errors import ParameterError

from .errors import WrongAnswerError

Numbers = NDArray[np.float64]
Request = NDArray[np.intp]


@dataclass(frozen=True)
class SpotChecks:
    """How many answers of a server are checked, and how far off they may be.

    A client that has the program computes the answers of so many of its requests in the clear, at random. Any
    other sends so many of them twice: encrypted anew, with the samples of a request in another order, and all
    requests shuffled. A server cannot tell which requests are checked, as ciphertexts show nothing.

    What is noticed is garbage. A server that computes another function for everybody, or adds the same to all
    answers, is noticed by a client with the program alone.

    Args:
        count: requests that are checked, at least 1. A request holds as many samples as the model takes at a
            time.
        tolerance: largest difference of an output that is no reason to doubt, in units of the outputs: twice
            the error of an answer. Take it from what the model promises, not from what the server answers.

    Raises:
        ParameterError: the count is below 1, or the tolerance is no positive number.
    """

    count: int
    tolerance: float

    def __post_init__(self) -> None:
        if self.count < 1:
            raise ParameterError(
                f"count={self.count}; check at least one request", what="count", value=self.count, minimum=1
            )
        if not 0 < self.tolerance < math.inf:
            raise ParameterError(
                f"tolerance={self.tolerance}; it is a positive number, in units of the outputs",
                what="tolerance",
                value=self.tolerance,
                minimum=0,
            )

    def noticed(self, requests: int, wrong: int, *, with_program: bool) -> float:
        """Probability with which a server is noticed that answers so many requests wrongly, by more than the
        tolerance.

        Args:
            requests: that the samples make, without those that are sent twice.
            wrong: answers that are wrong, of all that are sent. Without the program each counts as wrong in a
                way of its own.
            with_program: whether the client has the program.

        Raises:
            ParameterError: there are more checks than requests.
        """
        self._require(requests)
        sent = requests if with_program else requests + self.count
        looked_at = self.count if with_program else 2 * self.count
        return float(1 - Fraction(math.comb(sent - looked_at, wrong), math.comb(sent, wrong)))

    def _require(self, requests: int) -> None:
        if self.count > requests:
            raise ParameterError(
                f"count={self.count} checks of {requests} requests; check no more than there are, or send "
                "more samples",
                what="count",
                value=self.count,
                minimum=1,
                maximum=requests,
            )


def answers(
    requests: Sequence[Request],
    send: Callable[[int, Request], Numbers],
    checks: SpotChecks | None,
    clear: Callable[[Request], Numbers] | None,
) -> list[Numbers]:
    """The answers of all requests, of which some were checked.

    Args:
        requests: the indices of the samples that share ciphertexts.
        send: answers one, given its place among those that are sent.
        checks: None for none.
        clear: the right answers of one, where the client knows them.

    Raises:
        ParameterError: there are more checks than requests.
        WrongAnswerError: an answer is wrong.
    """
    if checks is None:
        return [send(place, request) for place, request in enumerate(requests)]
    checks._require(len(requests))
    # The server must not guess: the system's randomness.
    chance = random.SystemRandom()
    chosen = chance.sample(range(len(requests)), checks.count)
    if clear is not None:
        found = [send(place, request) for place, request in enumerate(requests)]
        for number in chosen:
            _compare(found[number], clear(requests[number]), checks, len(requests))
        return found
    orders = [np.array(chance.sample(range(len(requests[n])), len(requests[n]))) for n in chosen]
    sent = [*requests, *(requests[n][order] for n, order in zip(chosen, orders, strict=True))]
    places = chance.sample(range(len(sent)), len(sent))
    by_place = [send(place, sent[number]) for place, number in enumerate(places)]
    found = [answer for _, answer in sorted(zip(places, by_place, strict=True), key=lambda pair: pair[0])]
    for again, number, order in zip(found[len(requests) :], chosen, orders, strict=True):
        _compare(found[number][order], again, checks, len(requests))
    return found[: len(requests)]


def _compare(found: Numbers, expected: Numbers, checks: SpotChecks, requests: int) -> None:
    difference = float(np.abs(found - expected).max())
    if not difference <= checks.tolerance:
        raise WrongAnswerError(
            f"an answer of the server is off by {difference:.4g}, where {checks.tolerance:.4g} is allowed; "
            f"use none of its {requests} answers, and do not let the server see that you noticed",
            difference=difference,
            tolerance=checks.tolerance,
        )
