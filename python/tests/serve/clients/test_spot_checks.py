"""What spot checks detect in servers that answer garbage, and what they do not."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import combinations, permutations
from pathlib import Path
from typing import Any

import keywright as kw
import numpy as np
import pytest
from keywright.client import RemoteModel, SpotChecks
from keywright.client.spot_checks import Numbers, Request, answers
from keywright.errors.service import WrongAnswerError
from keywright.runtime import run_clear
from keywright.serve import Service
from tests.serve.network import INPUTS, listening, make_full

SAMPLES = np.arange(10.0)
REQUESTS = [np.arange(10)[first : first + 2] for first in range(0, 10, 2)]
CHECKS = SpotChecks(2, 0.01)


def right(request: Request) -> Numbers:
    return SAMPLES[request][:, None]


def asked(garble: Callable[[int, Numbers], Numbers], clear: Callable[[Request], Numbers] | None) -> bool:
    """Whether a server is detected that changes its answer at each place with `garble`."""
    sent: list[tuple[int, list[int]]] = []

    def send(place: int, request: Request) -> Callable[[], Numbers]:
        sent.append((place, sorted(request.tolist())))
        return lambda: garble(place, right(request))

    noticed = False
    try:
        answers(REQUESTS, send, CHECKS, clear)
    except WrongAnswerError:
        noticed = True
    assert [place for place, _ in sent] == list(range(5 if clear else 7))
    assert {tuple(indices) for _, indices in sent} == {tuple(request.tolist()) for request in REQUESTS}
    return noticed


def test_honest_servers_are_not_noticed_and_answers_are_in_order() -> None:
    for clear in (None, right):
        for _ in range(50):
            answer = answers(REQUESTS, lambda _, request: lambda: right(request) + 0.004, CHECKS, clear)
            assert np.concatenate(answer)[:, 0] == pytest.approx(SAMPLES + 0.004)
    assert len(answers(REQUESTS, lambda _, request: lambda: right(request), None, None)) == 5


@pytest.mark.parametrize("checks", [None, CHECKS])
def test_answers_are_decrypted_when_all_requests_are_sent(checks: SpotChecks | None) -> None:
    """A server that sends an unreadable answer does not learn from the number of requests that it is one."""
    sent: list[int] = []

    def send(place: int, request: Request) -> Callable[[], Numbers]:
        sent.append(place)

        def decrypt() -> Numbers:
            raise kw.errors.NoiseError("unreadable", code="overflow")

        return decrypt

    with pytest.raises(kw.errors.NoiseError, check=lambda error: error.code == "overflow"):
        answers(REQUESTS, send, checks, None)
    assert sent == list(range(5 if checks is None else 7))


@pytest.mark.parametrize("with_program", [False, True])
@pytest.mark.parametrize("wrong", [1, 2, 4])
def test_garbage_is_noticed_as_often_as_stated(wrong: int, with_program: bool) -> None:
    stated = CHECKS.noticed(5, wrong, with_program=with_program)
    runs, seen, draw = 1500, 0, random.Random(7)
    for _ in range(runs):
        places = draw.sample(range(5 if with_program else 7), wrong)
        seen += asked(
            lambda place, values, at=places: values + (place + 1.0) * (place in at),  # type: ignore[misc]
            right if with_program else None,
        )
    # Six deviations of a binomial variable.
    assert abs(seen / runs - stated) <= 6 * (stated * (1 - stated) / runs) ** 0.5


def test_probabilities_are_those_of_all_choices() -> None:
    """Counted over every set of checked requests and every set of wrong ones."""
    for count, requests in [(1, 1), (1, 4), (2, 4), (3, 4)]:
        checks = SpotChecks(count, 1.0)
        for wrong in range(1, requests + 1):
            cases = [
                bool(set(looked_at) & set(at))
                for looked_at in combinations(range(requests), count)
                for at in combinations(range(requests), wrong)
            ]
            assert checks.noticed(requests, wrong, with_program=True) == pytest.approx(np.mean(cases))
            places = list(permutations(range(requests + count)))[::7] if requests + count < 7 else []
            for place in places:
                # The first requests are those that are sent twice; their pairs are at these places.
                pairs = [(place[n], place[requests + n]) for n in range(count)]
                cases = [
                    any((a in at) or (b in at) for a, b in pairs)
                    for at in combinations(range(requests + count), wrong)
                ]
                assert checks.noticed(requests, wrong, with_program=False) == pytest.approx(np.mean(cases))


def test_consistent_lies_are_detected_only_with_the_program() -> None:
    assert not any(asked(lambda _, values: values + 1, None) for _ in range(50))
    assert all(asked(lambda _, values: values + 1, right) for _ in range(50))
    # A request that is sent again has its samples in another order: for two samples, half of the time.
    first = np.array([[1.0], [0.0]])
    seen = [asked(lambda _, values: values + first, None) for _ in range(200)]
    assert 0.75 - 6 * 0.031 < np.mean(seen) < 0.75 + 6 * 0.031


@pytest.mark.parametrize(("count", "tolerance"), [(0, 1.0), (1, 0.0), (1, float("nan")), (1, float("inf"))])
def test_meaningless_numbers_of_checks_are_refused(count: int, tolerance: float) -> None:
    with pytest.raises(kw.errors.ParameterError):
        SpotChecks(count, tolerance)


def test_more_checks_than_requests_are_refused() -> None:
    for ask in (
        lambda: SpotChecks(6, 1.0).noticed(5, 1, with_program=True),
        lambda: answers(REQUESTS, lambda _, request: lambda: right(request), SpotChecks(6, 1.0), None),
    ):
        with pytest.raises(kw.errors.ParameterError) as caught:
            ask()
        assert (caught.value.value, caught.value.maximum) == (6, 5)


@pytest.mark.parametrize("known", [True, False])
def test_a_server_that_gives_one_answer_to_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, known: bool
) -> None:
    model = make_full(batch=4)
    service, program = Service(model, tmp_path), model.program
    samples = np.random.default_rng(5).uniform(-1, 1, (11, INPUTS))
    checks = SpotChecks(3, 1e-5)
    steps: list[tuple[int, int]] = []
    replies: list[bytes] = []
    places: list[object] = []

    def count(done: int, total: int) -> None:
        steps.append((done, total))

    with listening(service) as server:
        remote = RemoteModel(server.url, program=program if known else None, insecure=True)
        with remote.session() as session:
            session.upload_keys()
            values = session.infer(samples, count, checks=checks)
            evaluated = session._evaluated

            def first_again(*request: Any) -> bytes:
                replies.append(evaluated(*request))
                places.append(request[3])
                return replies[0]

            monkeypatch.setattr(session, "_evaluated", first_again)
            # The order of the samples that are sent again is the same once in 24^3 times.
            with pytest.raises(WrongAnswerError, match="use none") as caught:
                session.infer(samples, checks=checks)
    service.close()
    assert np.abs(values - run_clear(program, samples)).max() < 1e-5
    # A server would know a short request that comes twice.
    assert set(places) == {None}
    assert steps == sorted(steps)
    assert steps[-1][0] == steps[-1][1]
    assert caught.value.difference > caught.value.tolerance == checks.tolerance
