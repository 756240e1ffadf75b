"""Which chain of key_switch.sv does what in which slot.

Found by search, which is deterministic, and checked rule by rule (doc/key_switch.md).
"""

import functools
import random
from dataclasses import dataclass

Operation = tuple[str, int, int]  # kind, limb or digit or half, prime


@dataclass(frozen=True)
class Shape:
    """What a key switch is for: ciphertexts of `level + 1` primes, digits of `alpha`, as many special primes.

    `gap`: slots from the beginning of a result to that of an operation that reads it: one, or two where a
    polynomial takes less time than the pipeline, with 4 lanes and, for alpha above 1, at N = 2^10.
    `centred`: whether a digit's representatives are centred, as in the software; SEAL's are not.
    """

    level: int
    alpha: int = 1
    gap: int = 1
    centred: bool = True

    @property
    def limbs(self) -> int:
        """Primes of a ciphertext: polynomials of the input."""
        return self.level + 1

    @property
    def digits(self) -> list[range]:
        """The primes of every digit."""
        return [range(i, min(i + self.alpha, self.limbs)) for i in range(0, self.limbs, self.alpha)]

    @property
    def specials(self) -> range:
        """The special primes, after those of the ciphertext."""
        return range(self.limbs, self.limbs + self.alpha)

    @property
    def wide(self) -> set[int]:
        """Primes of 60 bits."""
        return {0, *self.specials}

    def digit_of(self, limb: int) -> int:
        """The digit of one of the ciphertext's primes."""
        return limb // self.alpha

    def sources(self, operation: Operation) -> tuple[list[int], list[int]]:
        """What N and R convert: rows, and the primes that these are modulo."""
        kind, i, _ = operation
        if kind == "N":
            return list(self.digits[i]), list(self.digits[i])
        rows = [self.limbs + i * self.alpha + s for s in range(self.alpha)]
        return rows, list(self.specials)


@dataclass(frozen=True)
class Schedule:
    """Slots of one key switch, from its first: `period` slots after it the next one begins."""

    shape: Shape
    period: int
    slot: dict[Operation, int]
    chain: dict[Operation, int]
    # Own products: limb -> output slot, and the inverse transform in whose shadow it is taken.
    own: dict[int, tuple[int, Operation]]


def operations(shape: Shape) -> list[Operation]:
    """I: inverse of limb i. N: digit d to prime j. S: inverse of half k, special prime j. R: it to j."""
    return [
        *(("I", i, i) for i in range(shape.limbs)),
        *(
            ("N", d, j)
            for j in range(shape.limbs + shape.alpha)
            for d, digit in enumerate(shape.digits)
            if j not in digit
        ),
        *(("S", k, j) for k in range(2) for j in shape.specials),
        *(("R", k, j) for k in range(2) for j in range(shape.limbs)),
    ]


def check(s: Schedule) -> None:
    """Every rule that memories and data flow put on a schedule. Results leave in the slot after."""
    shape, period, slot = s.shape, s.period, s.slot
    limbs, count, gap = shape.limbs, len(shape.digits), shape.gap
    assert set(slot) == set(operations(shape)), "every operation once"
    assert all(0 <= n < 2 * period for n in slot.values()), "an operation is of this frame or the one before"
    assert len({(s.chain[op], n % period) for op, n in slot.items()}) == len(slot), (
        "one operation per chain and slot"
    )
    assert all(s.chain[op] == 0 for op in slot if op[2] in shape.wide), "60-bit primes on the first chain"
    inputs = [slot["I", i, i] % period for i in range(limbs)]
    assert len(set(inputs)) == limbs, "one input port"
    writes: dict[int, list[int]] = {j: [] for j in range(limbs + shape.alpha)}
    for (kind, d, j), n in slot.items():
        if kind == "N":
            starts = [slot["I", i, i] for i in shape.digits[d]]
            assert max(starts) + 1 + gap <= n <= min(starts) + period, (
                "rows are read between their making and the next one's"
            )
            writes[j].append(n + 1)
    for i, (n, (kind, half, prime)) in s.own.items():
        carrier = (kind, half, prime)
        assert kind in "IS", "in the shadow of an inverse transform"
        assert n % period == (slot[carrier] + 1) % period, "when its result leaves"
        assert s.chain[carrier] == 0 or i not in shape.wide, "on a chain as wide as the prime"
        assert 1 <= n < 2 * period, "of this frame or the one before"
        start = slot["I", i, i]
        assert start + 1 <= n <= start + 2 * period - 2, "within its two buffers"
        writes[i].append(n)
    assert len({carrier for _, carrier in s.own.values()}) == limbs == len(s.own), "every own product once"
    for times in writes.values():
        assert len({n % period for n in times}) == len(times) == count, (
            "an accumulator takes one product at a time"
        )
    for k in range(2):
        ready = [slot["S", k, j] for j in shape.specials]
        for j, n in zip(shape.specials, ready, strict=True):
            assert max(writes[j]) + 1 + gap <= n < min(writes[j]) + period, (
                "a half is read when complete, no longer added to, not yet replaced"
            )
        for j in range(limbs):
            r = slot["R", k, j]
            assert max(ready) + 1 + gap <= r <= min(ready) + period, (
                "a remainder is read between its making and the next one's"
            )
            assert r + gap <= 2 * period, "a result has left when its switch's number is another's"
            assert max(writes[j]) + 2 <= r + 1 < min(writes[j]) + period, (
                "a sum is taken when complete, no longer added to, not yet replaced"
            )

    for c in range(2):
        for port in (key_order(s, c), result_order(s, c)):
            assert not port or max(port)[0] < min(port)[0] + period, (
                "a port's beats are of one switch after another"
            )


def key_order(s: Schedule, chain: int) -> list[tuple[int, int, int]]:
    """The key's polynomials in the order of a chain's port: output slot, digit, prime."""
    products = [(n + 1, op[1], op[2]) for op, n in s.slot.items() if op[0] == "N" and s.chain[op] == chain]
    own = [(n, s.shape.digit_of(i), i) for i, (n, carrier) in s.own.items() if s.chain[carrier] == chain]
    return sorted([*products, *own])


def result_order(s: Schedule, chain: int) -> list[tuple[int, int, int]]:
    """Results and addends in the order of a chain's ports: output slot, half, prime."""
    return sorted((n + 1, op[1], op[2]) for op, n in s.slot.items() if op[0] == "R" and s.chain[op] == chain)


def input_order(s: Schedule) -> list[int]:
    """The ciphertext's primes in the order of the input port."""
    return [i for _, i in sorted((n, op[1]) for op, n in s.slot.items() if op[0] == "I")]


def attempt(shape: Shape, period: int, rnd: random.Random) -> Schedule | None:
    """Places one operation after another in an early free slot, some choices left to chance."""
    limbs, gap, wide = shape.limbs, shape.gap, shape.wide
    busy: set[tuple[int, int]] = set()
    slot: dict[Operation, int] = {}
    chain: dict[Operation, int] = {}
    writes: dict[int, list[int]] = {j: [] for j in range(limbs + shape.alpha)}

    # How often the first slot with room ends the looking, and how often the earliest is taken. Digits of
    # several primes leave few ways: narrow transforms have to wait for the others, in some attempts they do.
    soon, early = (
        (0.75, 0.8) if shape.alpha == 1 else (rnd.choice([0.9, 0.75, 0.4, 0.1]), rnd.choice([0.8, 0.3]))
    )
    full = sum(op[2] in wide for op in operations(shape)) == period

    def place(op: Operation, low: int, high: int, taken: set[int]) -> bool:
        chains = [0] if op[2] in wide else ([1, 0] if rnd.random() < 0.7 else [0, 1])
        if op[2] not in wide and (op[0] == "I" or full):
            chains = [1]
        looks = soon if shape.alpha == 1 or op[2] in wide or op[0] == "I" else soon / 2
        options: list[tuple[int, int]] = []
        for n in range(low, high + 1):
            options += [(n, c) for c in chains if (c, n % period) not in busy and n % period not in taken]
            if options and rnd.random() < looks:
                break
        if not options:
            return False
        n, c = options[0] if rnd.random() < early else rnd.choice(options)
        busy.add((c, n % period))
        slot[op], chain[op] = n, c
        return True

    order = list(range(limbs))
    rnd.shuffle(order)
    inputs: set[int] = set()
    for i in order:
        if not place(("I", i, i), 0, limbs + 2, inputs):
            return None
        inputs.add(slot["I", i, i] % period)
    rnd.shuffle(order)
    products: list[Operation] = [("N", d, j) for j in shape.specials for d in range(len(shape.digits))]
    rest: list[Operation] = [
        ("N", d, j) for j in order for d, digit in enumerate(shape.digits) if j not in digit
    ]
    products += sorted(rest, key=lambda op: (order.index(op[2]), rnd.random()))
    for op in products:
        _, d, j = op
        starts = [slot["I", i, i] for i in shape.digits[d]]
        taken = {(n - 1) % period for n in writes[j]}
        if not place(op, max(starts) + 1 + gap, min(starts) + period, taken):
            return None
        writes[j].append(slot[op] + 1)
    for k in range(2):
        for j in shape.specials:
            low, high = max(writes[j]) + 1 + gap, min(writes[j]) + period - 1
            if not place(("S", k, j), low, high, set()):
                return None
    own: dict[int, tuple[int, Operation]] = {}
    shadows = [op for op in slot if op[0] in "IS"]
    rnd.shuffle(order)
    for i in sorted(order, key=lambda i: i not in wide):
        options = [
            (n, op)
            for op in shadows
            if op not in {o for _, o in own.values()} and (chain[op] == 0 or i not in wide)
            for n in range((slot[op] + 1) % period, 2 * period, period)
            if n >= 1 and slot["I", i, i] + 1 <= n <= slot["I", i, i] + 2 * period - 2
            and n % period not in {w % period for w in writes[i]}
        ]  # fmt: skip
        if not options:
            return None
        own[i] = rnd.choice(options)
        writes[i].append(own[i][0])
    last = [("R", k, j) for k in range(2) for j in range(limbs)]
    for op in sorted(last, key=lambda op: (min(writes[op[2]]), rnd.random())):
        _, k, j = op
        ready = [slot["S", k, p] for p in shape.specials]
        low = max(max(ready) + 1 + gap, max(writes[j]) + 1)
        high = min(min(ready) + period, min(writes[j]) + period - 2, 2 * period - gap)
        if not place(op, low, high, set()):
            return None
    schedule = Schedule(shape, period, slot, chain, own)
    try:
        check(schedule)
    except AssertionError:
        return None
    return schedule


@functools.cache
def search(shape: Shape) -> Schedule:
    """The shortest period at which chance finds a schedule; never below what the transforms need."""
    every = operations(shape)
    wide = sum(op[2] in shape.wide for op in every)
    period = max((len(every) + 1) // 2, wide)
    while True:
        rnd = random.Random(1)
        for _ in range(20000):
            if slots := attempt(shape, period, rnd):
                return slots
        period += 1


def chain_primes(schedule: Schedule, chain: int) -> list[int]:
    """The primes that a chain computes with."""
    used = {op[2] for op in schedule.slot if schedule.chain[op] == chain}
    used |= {i for i, (_, carrier) in schedule.own.items() if schedule.chain[carrier] == chain}
    return sorted(used)
