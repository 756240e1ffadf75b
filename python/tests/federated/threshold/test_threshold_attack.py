"""What answers to several questions reveal about a client's share.

The module has an attack, weak protocols that it breaks, and the protocol of this build.

Without masks a client `j` answers for a sum and a set `T` of decrypting clients `lambda u + E mod Q`. Here
`lambda` is the public Lagrange coefficient of `j` in `T`, `u = f(j) c_1` depends on its share, and `E` has
`smudging_bits` bits. Answers for several sets are a hidden-number problem in every coefficient of `u`, and `u
/ c_1` is the share. So answers carry masks that only the answers of the whole set cancel.

The checks know `u` and subtract it. The remainder, the mask and `E`, must look uniform for every question,
and for every combination of questions in which the masks of a weaker protocol cancel.
"""

import hashlib
import itertools
import math
import os
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest
from keywright.federated import ThresholdKey, ThresholdParameters, ThresholdParty, ThresholdShare
from tests.federated.threshold.lattice import HiddenNumber, centred
from tests.federated.threshold.residues import Poly, Ring

SEED = bytes(range(32))
SMALL, LARGE = (6, 3), (32, 16)
"""Parties and threshold. Lagrange coefficients of 3 of 6 are fractions of small numbers: many `u` explain the
answers. Of 16 of 32 one does."""
VALUES = np.array([[-(10**6), 7, 0, 999_999], [1, 2, 3, -4], [5000, -5000, 250, -250]])
"""Three clients' updates."""
FEWEST, MOST = 5, 10
"""Sets for which a client is asked. Five are the fewest that determine `u`."""
GAUSSIAN_BOUND = 29
TRIED = 64
"""Number of coefficients that the attack tries."""


@dataclass(frozen=True)
class Question:
    """A request to a client: its part of a decryption of a sum by a set of clients, in a round of a session.

    Attributes:
        active: the set.
        total: index of the group's sum.
        round: from 1.
        session: of the run.
    """

    active: tuple[int, ...]
    total: int = 0
    round: int = 1
    session: bytes = bytes(16)


Answers = Callable[[Question], list[int]]
"""A client's answers: N coefficients modulo Q to every question."""


@dataclass(frozen=True, eq=False)
class Group:
    """Parties after their set-up, with everything that a test may know."""

    parameters: ThresholdParameters
    ring: Ring
    key: ThresholdKey
    shares: list[ThresholdShare]
    updates: list[bytes]
    totals: list[bytes]

    @property
    def bits(self) -> int:
        return self.parameters.smudging_bits

    def share(self, party: int) -> Poly:
        """`f(party)`."""
        return self.ring.polynomials(self.shares[party - 1].to_bytes())[0][0]

    def multiplier(self, party: int, active: Sequence[int]) -> int:
        """`prod k / (k - party)` over the others."""
        others, q = [k for k in active if k != party], self.ring.modulus
        return math.prod(others) * pow(math.prod(k - party for k in others), -1, q) % q

    def interpolate(self, shares: dict[int, Poly]) -> Poly:
        """Return the joint secret from as many shares as the threshold."""
        assert len(shares) == self.parameters.threshold
        return self.ring.add(
            *(self.ring.scale(share, self.multiplier(j, list(shares))) for j, share in shares.items())
        )

    def phase(self, secret: Poly, data: bytes) -> list[int]:
        """`c_0 + S c_1`, centred: scaled integers and an error."""
        c0, c1 = self.ring.polynomials(data)[0]
        coefficients = self.ring.coefficients(self.ring.add(c0, self.ring.multiply(secret, c1)))
        return [centred(x, self.ring.modulus) for x in coefficients]

    def c1(self, total: int) -> Poly:
        return self.ring.polynomials(self.totals[total])[0][1]


@cache
def hidden(g: Group, party: int, total: int) -> list[int]:
    """`u = f(party) c_1`."""
    return g.ring.coefficients(g.ring.multiply(g.share(party), g.c1(total)))


@cache
def group(parties: int, threshold: int) -> Group:
    """Return parties with keys, three updates, and two sums of them."""
    parameters = ThresholdParameters(parties, threshold, max_inputs=4, magnitude=10**6, max_values=1 << 12)
    members = [ThresholdParty.generate(parameters, SEED) for _ in range(parties)]
    key = ThresholdKey.combine(parameters, SEED, [member.public_half() for member in members])
    dealt = [member.deal() for member in members]
    keys = [[os.urandom(32) for _ in range(parties)] for _ in range(parties)]
    masks = [[keys[min(i, j)][max(i, j)] for i in range(parties)] for j in range(parties)]
    shares = [
        ThresholdShare.combine(parameters, j + 1, [d[j] for d in dealt], masks[j]) for j in range(parties)
    ]
    updates = [key.encrypt(values) for values in VALUES]
    totals = [parameters.add(updates), parameters.add(updates[1:])]
    return Group(parameters, Ring.of(parameters), key, shares, updates, totals)


# ---- the questions of a curious server ----


@cache
def sets_to_ask(shape: tuple[int, int], party: int, count: int) -> tuple[tuple[int, ...], ...]:
    """Return sets of decrypting clients. For `LARGE`, the first five or more of them determine `u`.

    Coefficients of random sets are fractions of numbers that are too small. Several hundred changes correct
    that, if there are enough parties: each is kept if it lengthens the shortest vector of their lattice.
    """
    parties, threshold = shape
    g = group(parties, threshold)
    rng = random.Random(party)
    others = [k for k in range(1, parties + 1) if k != party]

    def problem(sets: Sequence[tuple[int, ...]]) -> HiddenNumber:
        return HiddenNumber([g.multiplier(party, active) for active in sets], g.ring.modulus)

    def other() -> tuple[int, ...]:
        while True:
            active = tuple(sorted([party, *rng.sample(others, threshold - 1)]))
            if active not in sets:
                return active

    def changed(active: tuple[int, ...]) -> tuple[int, ...]:
        members = set(active)
        for _ in range(rng.choice([1, 1, 2, 3])):
            members.remove(rng.choice([k for k in members if k != party]))
            members.add(rng.choice([k for k in others if k not in members]))
        return tuple(sorted(members))

    sets: list[tuple[int, ...]] = []
    while len(sets) < count:
        sets.append(other())
        if shape == SMALL or len(sets) < FEWEST:
            continue
        best = problem(sets)
        while not best.decides(g.bits):
            place = rng.randrange(len(sets)) if len(sets) == FEWEST else -1
            new = changed(sets[place])
            if new not in sets:
                tried = list(sets)
                tried[place] = new
                if (after := problem(tried)).log_gap >= best.log_gap:
                    sets, best = tried, after
    return tuple(sets)


def square(shape: tuple[int, int], party: int) -> list[tuple[int, ...]]:
    """Return four sets; the first and the last together have the members of the others."""
    parties, threshold = shape
    others = [k for k in range(1, parties + 1) if k != party]
    a, b, c, d, *rest = others
    same = [party, *rest[: threshold - 3]]
    return [tuple(sorted([*same, *pair])) for pair in ((a, c), (a, d), (b, c), (b, d))]


# ---- protocols ----


Mask = Callable[[Question], list[int]]


def masked(g: Group, party: int, mask: Mask) -> Answers:
    """`lambda u + E + mask`."""
    system = random.SystemRandom()
    half = 1 << (g.bits - 1)

    def answer(question: Question) -> list[int]:
        factor = g.multiplier(party, question.active)
        return [
            (factor * u + system.randrange(-half, half) + x) % g.ring.modulus
            for u, x in zip(hidden(g, party, question.total), mask(question), strict=True)
        ]

    return answer


def drawn(g: Group, key: object) -> list[int]:
    """Return numbers modulo Q, the same for the same key."""
    rng = random.Random(repr(key))
    return [rng.randrange(g.ring.modulus) for _ in range(g.ring.n)]


def unmasked(g: Group, party: int) -> Answers:
    """The first version of the protocol: no masks."""
    return masked(g, party, lambda question: [0] * g.ring.n)


def ideal(g: Group, party: int) -> Answers:
    """A separate uniform mask for every question."""
    return masked(g, party, lambda question: drawn(g, question))


def pairwise_masks(g: Group, party: int, of: Callable[[Question], object]) -> Answers:
    """A mask for every other client of the set, which one of the two adds and the other subtracts.

    It depends on part of the question.
    """

    def mask(question: Question) -> list[int]:
        signed = [
            [x if party < k else -x for x in drawn(g, (min(party, k), max(party, k), of(question)))]
            for k in question.active
            if k != party
        ]
        return [sum(values) for values in zip(*signed, strict=True)]

    return masked(g, party, mask)


def this_build(g: Group, party: int) -> Answers:
    """The engine's answers."""

    def answer(question: Question) -> list[int]:
        return coefficients_of_partial(g, partial(g, party, question))

    return answer


def partial(g: Group, party: int, question: Question) -> bytes:
    """Return a client's answer as it sends it."""
    return g.shares[party - 1].partial(
        g.totals[question.total],
        list(question.active),
        session=question.session,
        round=question.round,
    )


def coefficients_of_partial(g: Group, data: bytes) -> list[int]:
    """The coefficients modulo Q of an answer of one chunk."""
    ((poly,),) = g.ring.polynomials(data)
    return g.ring.coefficients(poly)


# ---- the checks ----


def assert_uniform(values: Sequence[int], modulus: int) -> None:
    """Check that values modulo Q are spread like uniform ones, and no more of them are small.

    A uniform source fails with a probability below 2^-60.
    """
    count = len(values)
    assert count >= 4096
    small = sum(abs(centred(x, modulus)) < modulus >> 8 for x in values)
    assert small < 3 * count / 128, f"{small} of {count} values are below Q / 2^8"
    bins = np.bincount([(x % modulus << 6) // modulus for x in values], minlength=64)
    deviation = float(((bins - count / 64) ** 2).sum() / (count / 64))
    assert deviation < 300, f"chi^2 with 63 degrees of freedom is {deviation}"


def assert_nothing_recovered(g: Group, party: int, questions: Sequence[Question], answers: Answers) -> None:
    """Check that no `u` explains the answers with errors of smudging's size, in any tried coefficient."""
    given = [answers(question) for question in questions]
    multipliers = [g.multiplier(party, question.active) for question in questions]
    problem = HiddenNumber(multipliers, g.ring.modulus)
    # The number of u that explain random answers, on average, is below 2^-30.
    log_q = g.parameters.log_q
    assert len(questions) * (log_q - g.bits) > log_q + 30
    for i in range(TRIED):
        assert problem.solve([answer[i] for answer in given], g.bits) is None, f"coefficient {i}"


def assert_masked(g: Group, party: int, questions: Sequence[Question], answers: Answers) -> None:
    """Check that every question has its own mask, and that masks of different questions are independent. The
    first four questions are those of `square`."""
    modulus = g.ring.modulus
    left = []
    for question in questions:
        answer = answers(question)
        assert_uniform(answer, modulus)
        factor = g.multiplier(party, question.active)
        left.append([a - factor * u for a, u in zip(answer, hidden(g, party, question.total), strict=True)])
    for i, mask in enumerate(left):
        assert_uniform(mask, modulus)
        for before in left[:i]:
            assert_uniform([x - y for x, y in zip(mask, before, strict=True)], modulus)
            assert_uniform([x + y for x, y in zip(mask, before, strict=True)], modulus)
    assert_uniform([x - y - z + w for x, y, z, w in zip(*left[:4], strict=True)], modulus)


def questions_of_all_kinds(shape: tuple[int, int], party: int) -> list[Question]:
    """Other sets, another sum, other rounds, another session."""
    corners = square(shape, party)
    return [
        *map(Question, corners),
        *(Question(active) for active in sets_to_ask(shape, party, MOST)[:3] if active not in corners),
        Question(corners[0], total=1),
        Question(corners[0], round=2),
        Question(corners[0], round=3),
        Question(corners[0], session=bytes([1] * 16)),
    ]


def assert_holds(shape: tuple[int, int], protocol: Callable[[Group, int], Answers], party: int = 2) -> None:
    """Run all checks that the protocol must pass."""
    g = group(*shape)
    answers = cache(protocol(g, party))
    for count in range(FEWEST, MOST + 1):
        sets = sets_to_ask(shape, party, MOST)[:count]
        for questions in (
            [Question(active) for active in sets],
            [Question(active, round=i) for i, active in enumerate(sets, start=1)],
            [Question(sets[0], round=i) for i in range(1, count + 1)],
        ):
            assert_nothing_recovered(g, party, questions, answers)
    assert_masked(g, party, questions_of_all_kinds(shape, party), answers)


# ---- the attack works ----


def test_the_bytes_are_read_as_the_engine_means_them() -> None:
    g = group(*SMALL)
    ring, (parties, threshold) = g.ring, SMALL
    assert math.isclose(math.log2(ring.modulus), g.parameters.log_q, abs_tol=1e-9)
    rng = random.Random(1)
    for transform in ring.transforms:
        q = transform.prime
        values = [rng.randrange(q) for _ in range(ring.n)]
        evaluations = transform.forward(values)
        assert transform.inverse(evaluations) == values
        for i in (0, 1, 2, 5, ring.n - 1):
            point, value = pow(transform.root, 2 * transform.order[i] + 1, q), 0
            for x in reversed(values):
                value = (value * point + x) % q
            assert evaluations[i] == value

    # Any threshold of shares give one secret: a sum of as many ternary ones as there are parties.
    secret = g.interpolate({j: g.share(j) for j in (1, 2, 3)})
    assert secret == g.interpolate({j: g.share(j) for j in (2, 4, 6)})
    sizes = [centred(x, ring.modulus) for x in ring.coefficients(secret)]
    assert max(map(abs, sizes)) <= parties
    assert 0.9 < np.var(sizes) / (parties * 2 / 3) < 1.1

    # It is the secret of the joint public key, and partial decryptions use it.
    error = GAUSSIAN_BOUND * (2 * ring.n * parties + 1)
    assert max(map(abs, g.phase(secret, g.key.encrypt(np.zeros(1, np.int64))))) <= error
    phase = g.phase(secret, g.totals[0])
    question = Question((5, 2, 3))
    assert len(question.active) == threshold
    parts = [coefficients_of_partial(g, partial(g, j, question)) for j in question.active]
    constant = ring.coefficients(ring.polynomials(g.totals[0])[0][0])
    for expected, *residues in zip(phase, constant, *parts, strict=True):
        assert abs(centred(sum(residues) - expected, ring.modulus)) <= threshold << (g.bits - 1)


def recover_share(shape: tuple[int, int], party: int, answers: Answers) -> Poly:
    """Return the share of a client from its answers for several sets and one sum, as a server can compute
    it."""
    g = group(*shape)
    sets = sets_to_ask(shape, party, FEWEST)
    problem = HiddenNumber([g.multiplier(party, active) for active in sets], g.ring.modulus)
    assert problem.decides(g.bits)
    given = [answers(Question(active)) for active in sets]
    numbers = []
    for answer in zip(*given, strict=True):
        bits = problem.solve(answer, g.bits)
        assert bits is not None
        numbers.append(bits)
    return g.ring.divide(g.ring.evaluations(numbers), g.c1(0))


def assert_opens_updates(g: Group, shares: dict[int, Poly]) -> None:
    """Check that shares give the secret, and with it every single update."""
    secret = g.interpolate(shares)
    one = max(g.phase(secret, g.key.encrypt(np.ones(1, np.int64))))
    scale = 1 << round(math.log2(one))
    for update, values in zip(g.updates, VALUES, strict=True):
        phase = g.phase(secret, update)
        assert [round(x / scale) for x in phase[: len(values)]] == values.tolist()


def test_unmasked_answers_for_five_sets_give_the_share_and_all_updates() -> None:
    g = group(*LARGE)
    victim, colluding = 31, range(1, g.parameters.threshold)
    share = recover_share(LARGE, victim, unmasked(g, victim))
    assert share == g.share(victim)
    # Fewer than the threshold collude with the server. They have their own shares.
    assert_opens_updates(g, {victim: share} | {j: g.share(j) for j in colluding})


@pytest.mark.large
def test_unmasked_answers_give_a_server_alone_all_updates() -> None:
    g = group(*LARGE)
    asked = range(1, g.parameters.threshold + 1)
    shares = {j: recover_share(LARGE, j, unmasked(g, j)) for j in asked}
    assert_opens_updates(g, shares)


# ---- the checks detect weak protocols ----


WEAK: dict[str, Callable[[Group, int], Answers]] = {
    "no mask": unmasked,
    "one mask": lambda g, j: masked(g, j, lambda q: drawn(g, 0)),
    "not bound to the sum": lambda g, j: pairwise_masks(g, j, lambda q: (q.session, q.round, q.active)),
    "not bound to the round": lambda g, j: pairwise_masks(g, j, lambda q: (q.session, q.active, q.total)),
    "not bound to the session": lambda g, j: pairwise_masks(g, j, lambda q: (q.round, q.active, q.total)),
    "not bound to the set": lambda g, j: pairwise_masks(g, j, lambda q: (q.session, q.round, q.total)),
    "no pairs, not bound to the set": lambda g, j: masked(g, j, lambda q: drawn(g, (q.round, q.total))),
    "short": lambda g, j: masked(g, j, lambda q: [x // 8 for x in drawn(g, q)]),
}


@pytest.mark.parametrize("weakness", WEAK)
def test_the_checks_see_a_weak_protocol(weakness: str) -> None:
    g = group(*SMALL)
    with pytest.raises(AssertionError, match=r"values are below Q|chi\^2"):
        assert_masked(g, 2, questions_of_all_kinds(SMALL, 2), WEAK[weakness](g, 2))


@pytest.mark.parametrize("shape", [SMALL, LARGE])
def test_the_attack_sees_answers_without_masks(shape: tuple[int, int]) -> None:
    g = group(*shape)
    for count in range(FEWEST, MOST + 1):
        sets = sets_to_ask(shape, 2, MOST)[:count]
        with pytest.raises(AssertionError, match="coefficient"):
            assert_nothing_recovered(g, 2, [Question(active) for active in sets], unmasked(g, 2))


@pytest.mark.parametrize("shape", [SMALL, pytest.param(LARGE, marks=pytest.mark.full)])
def test_the_checks_let_uniform_masks_pass(shape: tuple[int, int]) -> None:
    assert_holds(shape, ideal)


def test_the_checks_let_pairwise_masks_pass() -> None:
    assert_holds(SMALL, lambda g, j: pairwise_masks(g, j, repr))


# ---- the protocol of this build ----


@pytest.mark.parametrize("shape", [SMALL, LARGE])
def test_answers_to_many_questions_say_nothing(shape: tuple[int, int]) -> None:
    assert_holds(shape, this_build)


def test_answers_of_a_part_of_a_set_say_nothing() -> None:
    g = group(*SMALL)
    question = Question((5, 2, 3))
    left = []
    for j in question.active:
        answer, factor = this_build(g, j)(question), g.multiplier(j, question.active)
        left.append([a - factor * u for a, u in zip(answer, hidden(g, j, 0), strict=True)])
    for mask in left:
        assert_uniform(mask, g.ring.modulus)
    for one, two in itertools.combinations(left, 2):
        assert_uniform([x + y for x, y in zip(one, two, strict=True)], g.ring.modulus)


# ---- only the total of a question is revealed: joint noise ----


def residuals(
    g: Group, question: Question, protocol: Callable[[Group, int], Answers]
) -> dict[int, list[int]]:
    """Answers without the parts that depend on shares: masks and smudging."""
    left = {}
    for j in question.active:
        answer, factor = protocol(g, j)(question), g.multiplier(j, question.active)
        pairs = zip(answer, hidden(g, j, question.total), strict=True)
        left[j] = [a - factor * u for a, u in pairs]
    return left


def assert_only_the_total_is_revealed(
    g: Group, question: Question, protocol: Callable[[Group, int], Answers]
) -> None:
    """Check that the sum of the answers of every proper subset of a set is uniform, and that those of the
    whole set add up to the decryption and one noise, which has every client's part of it.

    Answers that have noise of their own and no masks do not pass: an answer is then close to a multiple of
    the client's share, and no simulator that knows only the decryption can make it.
    """
    modulus, left = g.ring.modulus, residuals(g, question, protocol)
    subsets = [part for size in range(1, len(left)) for part in itertools.combinations(left, size)]
    for part in random.Random(1).sample(subsets, min(len(subsets), 40)):
        assert_uniform([sum(values) for values in zip(*(left[j] for j in part), strict=True)], modulus)
    total = [centred(sum(values), modulus) for values in zip(*left.values(), strict=True)]
    assert max(map(abs, total)) <= len(left) << (g.bits - 1), "masks do not cancel"
    # The variance of a uniform number of 2^w values, from each client. 4,096 samples have a deviation of 2 %.
    assert 0.9 < np.var(np.array(total, float) / 2**g.bits) / (len(left) / 12) < 1.1, "noise is missing"


@pytest.mark.parametrize(("shape", "active"), [(SMALL, (5, 2, 3)), (LARGE, tuple(range(3, 19)))])
def test_answers_of_a_set_reveal_their_total_and_nothing_else(
    shape: tuple[int, int], active: tuple[int, ...]
) -> None:
    assert_only_the_total_is_revealed(group(*shape), Question(active), this_build)


@pytest.mark.parametrize(
    ("protocol", "why"),
    [
        (unmasked, "values are below Q"),
        (ideal, "masks do not cancel"),
        (lambda g, j: masked(g, j, lambda q: drawn(g, j if j != 5 else 2)), "masks do not cancel"),
        (lambda g, j: pairwise_masks(g, j, repr) if j != 3 else unmasked(g, j), "values are below Q"),
    ],
    ids=["independent smudging", "masks that stay", "masks of one client", "a client without masks"],
)
def test_independent_smudging_and_masks_that_stay_are_seen(
    protocol: Callable[[Group, int], Answers], why: str
) -> None:
    with pytest.raises(AssertionError, match=why):
        assert_only_the_total_is_revealed(group(*SMALL), Question((5, 2, 3)), protocol)


def test_a_server_that_knows_two_shares_cannot_tell_which_of_them_answered() -> None:
    """The difference between independent and joint noise, as a distinguisher: it is right for all 4,096
    coefficients without masks, and for none with them."""
    g, question = group(*SMALL), Question((5, 2, 3))
    factor, bound = g.multiplier(2, question.active), 1 << (g.bits - 1)
    for protocol, fits in ((unmasked, True), (this_build, False)):
        answer = protocol(g, 2)(question)
        for share, expected in ((2, fits), (4, False)):
            left = (a - factor * u for a, u in zip(answer, hidden(g, share, 0), strict=True))
            assert all(abs(centred(x, g.ring.modulus)) <= bound for x in left) is expected


@cache
def answers_with(one: int, other: int, active: tuple[int, ...]) -> dict[int, list[int]]:
    """The answers of a set whose keys are those of their numbers, but one."""
    g = group(*SMALL)
    shares = {}
    for j in active:
        keys = [
            hashlib.sha256(repr(sorted((j, k))).encode()).digest() for k in range(1, g.parameters.parties + 1)
        ]
        if j in (one, other):
            keys[(one if j == other else other) - 1] = bytes([99]) * 32
        share = ThresholdShare.from_bytes(g.shares[j - 1].to_bytes(), g.parameters, j, keys)
        data = share.partial(g.totals[0], list(active), session=bytes(16), round=1)
        shares[j] = coefficients_of_partial(g, data)
    return shares


@pytest.mark.parametrize("pair", list(itertools.combinations((2, 3, 5), 2)))
def test_every_two_clients_share_a_mask_of_their_own(pair: tuple[int, int]) -> None:
    """So all the others may collude: what they know leaves the answers of the two masked."""
    modulus, active = group(*SMALL).ring.modulus, (2, 3, 5)
    before, after = answers_with(0, 0, active), answers_with(*pair, active)
    one, other = ([(x - y) % modulus for x, y in zip(after[j], before[j], strict=True)] for j in pair)
    assert_uniform(one, modulus)
    assert all((x + y) % modulus == 0 for x, y in zip(one, other, strict=True))
    assert all(after[j] == before[j] for j in active if j not in pair)


@pytest.mark.parametrize("party", [2, 3, 5])
def test_every_client_has_noise_that_nobody_else_knows(party: int) -> None:
    """The noise of one honest client hides the error of a sum."""
    g, active = group(*SMALL), (2, 3, 5)
    before, after = answers_with(0, 0, active), answers_with(party, party, active)
    noise = [centred(x - y, g.ring.modulus) for x, y in zip(after[party], before[party], strict=True)]
    assert max(map(abs, noise)) < 1 << g.bits
    assert 0.9 < np.var(np.array(noise, float) / 2**g.bits) / (2 / 12) < 1.1
    assert all(after[j] == before[j] for j in active if j != party)


def test_a_question_has_one_answer() -> None:
    g = group(*SMALL)
    first = partial(g, 2, Question((1, 2, 5)))
    assert partial(g, 2, Question((1, 2, 5))) == first
    assert partial(g, 2, Question((5, 1, 2))) == first
