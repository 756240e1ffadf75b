"""Programs on encrypted integers, evaluated by a BFV of Python integers, without residue systems.

A line `case log_n t packing state program` is followed by a line with the `fold` of the resulting
residues and the first four of them. Inputs `a`, `b` and `p` are `N` residues modulo `t` each, in this
order, from SplitMix64 at `state`. A program is in reverse Polish notation: `a`, `b` are encrypted, `p` is
not; `+`, `-`, `*` combine the two last values, the first of which is encrypted; `~` negates, `<k` rotates
both rows of slots by `k` to the left, `|` swaps the rows. Slots are a matrix of 2 rows, row by row.

`bfv.txt` is what SEAL computes: `bfv_seal.py` writes it. This program recomputes it with ciphertexts
modulo a power of two, products rounded over the integers (Fan and Vercauteren, ePrint 2012/144)
and new secrets in every run.
"""

import random
from collections.abc import Callable, Iterator
from decimal import MAX_EMAX, Context, Decimal
from itertools import islice
from typing import TypeVar

from files import finish, fold, splitmix64

CASES = [
    (12, 65537, "slots", 101, "a"),
    (12, 65537, "slots", 102, "a b + p - ~"),
    (12, 65537, "slots", 103, "a b *"),
    (12, 65537, "slots", 104, "a b - <3 p * |"),
    (12, 65537, "slots", 105, "a <-1 a | + b <2047 -"),
    (12, 40961, "slots", 106, "a b * <1 |"),
    (12, 65537, "coefficients", 107, "a b *"),
    (12, 4096, "coefficients", 108, "a p * b - ~"),
    (12, 2, "coefficients", 109, "a b * p +"),
    (13, 1032193, "slots", 110, "a b * a * b +"),
    (13, 786433, "coefficients", 111, "a b * b * p -"),
]

Poly = list[int]
Pair = tuple[Poly, Poly]
Value = TypeVar("Value")


def inputs(log_n: int, t: int, state: int) -> list[Poly]:
    """Residues of a, b and p."""
    words = splitmix64(state)
    return [[word % t for word in islice(words, 1 << log_n)] for _ in range(3)]


def evaluate(program: str, values: dict[str, Value], operations: dict[str, Callable[..., Value]]) -> Value:
    """Runs a program."""
    stack: list[Value] = []
    for token in program.split():
        if token in values:
            stack.append(values[token])
        elif token in "+-*":
            right, left = stack.pop(), stack.pop()
            stack.append(operations[token](left, right))
        elif token.startswith("<"):
            stack.append(operations["<"](stack.pop(), int(token[1:])))
        else:
            stack.append(operations[token](stack.pop()))
    (result,) = stack
    return result


def line(residues: Poly) -> str:
    """What the file holds of a result."""
    return f"{fold(residues):016x} {' '.join(map(str, residues[:4]))}\n"


def header(case: tuple[int, int, str, int, str]) -> str:
    """The line before it."""
    return f"case {' '.join(map(str, case))}\n"


# ---- polynomials modulo X^N + 1 ----


def multiply(a: Poly, b: Poly) -> Poly:
    """Product over the integers: coefficients side by side in two decimal numbers, multiplied exactly."""
    n = len(a)
    if min(a) < 0 or min(b) < 0:
        # Shifted by a constant c times all ones: (a + c) b = a b + c (1 + X + ...) b.
        low_a, low_b = min(0, *a), min(0, *b)
        product = multiply([x - low_a for x in a], [x - low_b for x in b])
        ones_b, ones_a = times_ones([x - low_b for x in b]), times_ones(a)
        return [x + low_a * y + low_b * z for x, y, z in zip(product, ones_b, ones_a, strict=True)]
    width = len(str(n * max(a) * max(b) + 1))
    context = Context(prec=2 * n * width + 1, Emax=MAX_EMAX)
    numbers = [Decimal("".join(f"{x:0{width}d}" for x in reversed(poly))) for poly in (a, b)]
    digits = format(context.multiply(*numbers), "f").zfill(2 * n * width)
    full = [int(digits[i : i + width]) for i in range(len(digits) - width, -1, -width)]
    return [x - y for x, y in zip(full[:n], full[n : 2 * n], strict=True)]


def times_ones(a: Poly) -> Poly:
    """Product with 1 + X + ... + X^(N-1)."""
    total, prefix, out = sum(a), 0, []
    for x in a:
        prefix += x
        out.append(2 * prefix - total)
    return out


def automorphism(a: Poly, g: int) -> Poly:
    """a(X^g)."""
    n = len(a)
    out = [0] * n
    for i, x in enumerate(a):
        power = i * g % (2 * n)
        out[power % n] = x if power < n else -x
    return out


# ---- slots ----


class Slots:
    """Values at the odd powers of a 2N-th root of unity modulo a prime t."""

    def __init__(self, n: int, t: int) -> None:
        self.n, self.t = n, t
        order = 2 * n
        assert (t - 1) % order == 0
        candidates = (pow(x, (t - 1) // order, t) for x in range(2, t))
        self.psi = next(root for root in candidates if pow(root, n, t) == t - 1)

    def exponents(self) -> Iterator[int]:
        """Exponent of each slot: 5^j, then -5^j. (SEAL has powers of 3, which no program can tell.)"""
        for sign in (1, -1):
            yield from (sign * pow(5, j, 2 * self.n) % (2 * self.n) for j in range(self.n // 2))

    def transform(self, values: Poly, root: int) -> Poly:
        """Values of a polynomial at all powers of a root whose order is the length."""
        if len(values) == 1:
            return values
        even, odd = (self.transform(values[k::2], root * root % self.t) for k in (0, 1))
        power, low, high = 1, [], []
        for x, y in zip(even, odd, strict=True):
            low.append((x + power * y) % self.t)
            high.append((x - power * y) % self.t)
            power = power * root % self.t
        return low + high

    def decode(self, coefficients: Poly) -> Poly:
        """Slots of a polynomial."""
        twisted = [x * pow(self.psi, i, self.t) for i, x in enumerate(coefficients)]
        values = self.transform(twisted, self.psi * self.psi % self.t)
        return [values[e // 2] for e in self.exponents()]

    def encode(self, slots: Poly) -> Poly:
        """The polynomial of slots."""
        values = [0] * self.n
        for e, slot in zip(self.exponents(), slots, strict=True):
            values[e // 2] = slot
        sums = self.transform(values, pow(self.psi, -2, self.t))
        inverse = pow(self.n, -1, self.t)
        return [x * inverse * pow(self.psi, -i, self.t) % self.t for i, x in enumerate(sums)]


# ---- the scheme ----


class Scheme:
    """BFV with one secret, Q = 2^bits, keys made when they are used."""

    def __init__(self, n: int, t: int) -> None:
        self.n, self.t = n, t
        self.bits = 40 + 2 * (t.bit_length() + n.bit_length() + 24)
        self.q = 1 << self.bits
        self.random = random.SystemRandom()
        self.s = [self.random.randrange(-1, 2) for _ in range(n)]

    def reduce(self, a: Poly) -> Poly:
        """Centred residues."""
        half = self.q >> 1
        return [(x + half) % self.q - half for x in a]

    def zero(self, message: Poly) -> Pair:
        """A symmetric encryption of a polynomial modulo Q."""
        a = [self.random.getrandbits(self.bits) for _ in range(self.n)]
        error = [round(self.random.gauss(0, 3.19)) for _ in range(self.n)]
        product = multiply(a, self.s)
        c0 = [m + e - x for m, e, x in zip(message, error, product, strict=True)]
        return self.reduce(c0), self.reduce(a)

    def encrypt(self, message: Poly) -> Pair:
        """A fresh ciphertext."""
        return self.zero([(self.q * m + self.t // 2) // self.t for m in message])

    def phase(self, c: Pair) -> Poly:
        """c_0 + c_1 s."""
        return self.reduce([x + y for x, y in zip(c[0], multiply(c[1], self.s), strict=True)])

    def decrypt(self, c: Pair) -> Poly:
        """The message."""
        noisy = [self.t * x for x in self.phase(c)]
        rounded = [(x + (self.q >> 1)) >> self.bits for x in noisy]
        noise = max(abs(x - (r << self.bits)) for x, r in zip(noisy, rounded, strict=True))
        assert noise < self.q >> 8, "the noise leaves no doubt"
        return [r % self.t for r in rounded]

    def switch(self, c: Poly, source: Poly) -> Pair:
        """An encryption of c times a source secret, by two digits of c."""
        half = self.bits // 2
        out: Pair = ([0] * self.n, [0] * self.n)
        high = [(x + (1 << (half - 1))) >> half for x in c]
        low = [x - (y << half) for x, y in zip(c, high, strict=True)]
        for digit, weight in ((low, 1), (high, 1 << half)):
            key = self.zero([weight * x for x in source])
            out = self.add(out, (multiply(digit, key[0]), multiply(digit, key[1])))
        return out

    def add(self, x: Pair, y: Pair) -> Pair:
        """Sum of ciphertexts."""
        first, second = ([a + b for a, b in zip(u, v, strict=True)] for u, v in zip(x, y, strict=True))
        return self.reduce(first), self.reduce(second)

    def negate(self, x: Pair) -> Pair:
        """Negated ciphertext."""
        return [-a for a in x[0]], [-a for a in x[1]]

    def multiply(self, x: Pair, y: Pair) -> Pair:
        """Product of ciphertexts, rounded over the integers and relinearized."""

        def scale(a: Poly) -> Poly:
            return self.reduce([(self.t * v + (self.q >> 1)) >> self.bits for v in a])

        cross = [u + v for u, v in zip(multiply(x[0], y[1]), multiply(x[1], y[0]), strict=True)]
        square = self.switch(scale(multiply(x[1], y[1])), multiply(self.s, self.s))
        return self.add((scale(multiply(x[0], y[0])), scale(cross)), square)

    def galois(self, x: Pair, g: int) -> Pair:
        """The image under X -> X^g."""
        switched = self.switch(automorphism(x[1], g), automorphism(self.s, g))
        return self.add((automorphism(x[0], g), [0] * self.n), switched)


def run(case: tuple[int, int, str, int, str]) -> Poly:
    """Residues that a program gives."""
    log_n, t, packing, state, program = case
    n = 1 << log_n
    scheme = Scheme(n, t)
    slots = Slots(n, t) if packing == "slots" else None
    a, b, p = (slots.encode(x) if slots else x for x in inputs(log_n, t, state))
    # A plaintext is a polynomial, a ciphertext a pair.
    values: dict[str, Poly | Pair] = {"a": scheme.encrypt(a), "b": scheme.encrypt(b), "p": p}

    def lifted(x: Poly | Pair) -> Pair:
        return x if isinstance(x, tuple) else ([(scheme.q * m + t // 2) // t for m in x], [0] * n)

    def times(x: Pair, y: Poly | Pair) -> Pair:
        if isinstance(y, tuple):
            return scheme.multiply(x, y)
        return scheme.reduce(multiply(x[0], y)), scheme.reduce(multiply(x[1], y))

    result = evaluate(
        program,
        values,
        {
            "+": lambda x, y: scheme.add(x, lifted(y)),
            "-": lambda x, y: scheme.add(x, scheme.negate(lifted(y))),
            "*": times,
            "~": scheme.negate,
            "<": lambda x, k: scheme.galois(x, pow(5, k, 2 * n)),
            "|": lambda x: scheme.galois(x, 2 * n - 1),
        },
    )
    assert isinstance(result, tuple)
    message = scheme.decrypt(result)
    return slots.decode(message) if slots else message


if __name__ == "__main__":
    finish(__file__, "".join(header(case) + line(run(case)) for case in CASES))
