"""Negacyclic transforms by their definition, and the streams that ntt_pipe takes and gives."""

from pipe_twiddles import log_lanes, reversed_bits, root


def forward(coefficients: list[int], q: int) -> list[int]:
    """Values at `psi^(2 brv(i) + 1)`: `X^n - r^2 = (X^(n/2) - r)(X^(n/2) + r)`, recursively."""
    log_n = (len(coefficients) - 1).bit_length()
    psi = root(q, log_n)

    def split(words: list[int], exponent: int) -> list[int]:
        # `words` modulo X^n - psi^exponent.
        if len(words) == 1:
            return words
        half = len(words) // 2
        r = pow(psi, exponent // 2, q)
        low, high = words[:half], [r * w % q for w in words[half:]]
        plus = [(a + b) % q for a, b in zip(low, high, strict=True)]
        minus = [(a - b) % q for a, b in zip(low, high, strict=True)]
        return split(plus, exponent // 2) + split(minus, exponent // 2 + len(coefficients))

    return split(coefficients, len(coefficients))


def lead(log_n: int) -> int:
    """Cycles of ntt_pipe from a beat's tag to its data (doc/ntt.md)."""
    k = log_lanes(log_n)
    return 9 * (2 * k - 1) + (1 << k) + 13


def latency(log_n: int) -> int:
    """Cycles of ntt_pipe from a beat's tag to its result, less the time of a polynomial."""
    return lead(log_n) + 9 * log_n + 2 * ((1 << log_lanes(log_n)) + 1) + 3


def scrambled(words: list[int]) -> list[int]:
    """Coefficients in the order of a stream, or back: position p holds coefficient reversed(p)."""
    bits = (len(words) - 1).bit_length()
    return [words[reversed_bits(p, bits)] for p in range(len(words))]


def packed(words: list[int], width: int) -> int:
    """Words as lanes of one vector."""
    return sum(word << width * i for i, word in enumerate(words))


def unpacked(vector: int, width: int, lanes: int) -> list[int]:
    """The lanes of a vector."""
    return [vector >> width * i & (1 << width) - 1 for i in range(lanes)]


def inverse(evaluations: list[int], q: int) -> list[int]:
    """The coefficients of a polynomial that takes these values."""
    n = len(evaluations)
    log_n = (n - 1).bit_length()
    psi, half = root(q, log_n), pow(2, -1, q)

    def join(words: list[int], exponent: int) -> list[int]:
        if len(words) == 1:
            return words
        middle = len(words) // 2
        plus, minus = join(words[:middle], exponent // 2), join(words[middle:], exponent // 2 + n)
        r = pow(psi, -(exponent // 2), q) * half % q
        low = [(a + b) * half % q for a, b in zip(plus, minus, strict=True)]
        return low + [(a - b) * r % q for a, b in zip(plus, minus, strict=True)]

    return join(evaluations, n)
