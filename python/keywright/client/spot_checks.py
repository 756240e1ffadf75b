"""Spot checks of a server's answers: a client cannot see the server's computation, but it can ask questions
whose answers it knows."""

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from keywright.errors import ParameterError
from keywright.errors.service import WrongAnswerError

Numbers = NDArray[np.float64]
Request = NDArray[np.intp]


@dataclass(frozen=True)
class SpotChecks:
    """The number of a server's answers that are checked, and their largest error.

    A client that has the program recomputes ``count`` randomly chosen requests in the clear. Any other client
    sends ``count`` requests twice: encrypted again, with the samples of a request in another order, and all
    requests shuffled. Ciphertexts reveal nothing, so a server cannot distinguish the checked requests.

    The checks detect garbage. Only a client with the program detects a server that computes another function
    for everyone, or adds the same offset to all answers.

    Args:
        count: requests that are checked, at least 1. A request holds as many samples as the model takes at a
            time.
        tolerance: largest acceptable difference of an output, in units of the outputs: twice the error of an
            answer. Take it from the model's report, not from the server's answers.

    Raises:
        ParameterError: the count is below 1, or the tolerance is not a positive number.
    """

    count: int
    tolerance: float

    def __post_init__(self) -> None:
        if self.count < 1:
            raise ParameterError(
                f"count={self.count} is below 1; check at least one request",
                what="count",
                value=self.count,
                minimum=1,
            )
        if not 0 < self.tolerance < math.inf:
            raise ParameterError(
                f"tolerance={self.tolerance} must be a positive number, in units of the outputs",
                what="tolerance",
                value=self.tolerance,
                minimum=0,
            )

    def noticed(self, requests: int, wrong: int, *, with_program: bool) -> float:
        """Return the probability of detecting a server that answers ``wrong`` requests wrongly, by more than
        the tolerance.

        Args:
            requests: number of requests, without those that are sent twice.
            wrong: number of wrong answers among all that are sent. Without the program, each is assumed to be
                wrong in its own way.
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
                f"count={self.count} checks exceed {requests} requests; lower the count, or send more "
                "samples",
                what="count",
                value=self.count,
                minimum=1,
                maximum=requests,
            )


def answers(
    requests: Sequence[Request],
    send: Callable[[int, Request], Callable[[], Numbers]],
    checks: SpotChecks | None,
    clear: Callable[[Request], Numbers] | None,
) -> list[Numbers]:
    """Return the answers of all requests after checking some. Answers are decrypted only when all have
    arrived, so that the number of requests does not tell the server whether its answers are usable.

    Args:
        requests: the indices of the samples that share ciphertexts.
        send: sends one request, given its index among those that are sent, and returns what decrypts its
            answer.
        checks: None for no checks.
        clear: returns the right answers of one request, if the client knows them.

    Raises:
        ParameterError: there are more checks than requests.
        WrongAnswerError: an answer is wrong.
    """
    if checks is None:
        return _decrypted([send(place, request) for place, request in enumerate(requests)])
    checks._require(len(requests))
    # Use the system's randomness, so that the server cannot guess.
    chance = random.SystemRandom()
    chosen = chance.sample(range(len(requests)), checks.count)
    if clear is not None:
        results = _decrypted([send(place, request) for place, request in enumerate(requests)])
        for number in chosen:
            _compare(results[number], clear(requests[number]), checks, len(requests))
        return results
    orders = [np.array(chance.sample(range(len(requests[n])), len(requests[n]))) for n in chosen]
    sent = [*requests, *(requests[n][order] for n, order in zip(chosen, orders, strict=True))]
    places = chance.sample(range(len(sent)), len(sent))
    by_place = _decrypted([send(place, sent[number]) for place, number in enumerate(places)])
    results = [answer for _, answer in sorted(zip(places, by_place, strict=True), key=lambda pair: pair[0])]
    for again, number, order in zip(results[len(requests) :], chosen, orders, strict=True):
        _compare(results[number][order], again, checks, len(requests))
    return results[: len(requests)]


def _decrypted(answers: Sequence[Callable[[], Numbers]]) -> list[Numbers]:
    return [decrypt() for decrypt in answers]


def _compare(result: Numbers, expected: Numbers, checks: SpotChecks, requests: int) -> None:
    difference = float(np.abs(result - expected).max())
    if not difference <= checks.tolerance:
        raise WrongAnswerError(
            f"an answer of the server is off by {difference:.4g}, the tolerance is "
            f"{checks.tolerance:.4g}; use none of its {requests} answers, and do not let the server see "
            "that you noticed",
            difference=difference,
            tolerance=checks.tolerance,
        )
