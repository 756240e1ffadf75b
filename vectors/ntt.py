"""Evaluations of polynomials in the order of docs/reference/conventions.md, each by Horner's rule.

The polynomial's coefficients are SplitMix64 from the prime as state, reduced. Each line: log2(N), prime, the
root psi, then pairs of an index and the value at psi^(2 brv(index) + 1).
"""

from itertools import count, islice

from files import finish, splitmix64


def is_prime(n: int) -> bool:
    """Miller-Rabin with the first twelve primes: exact below 2^64."""
    bases = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37)
    if n < 2 or any(n % p == 0 for p in bases):
        return n in bases
    twos = ((n - 1) & (1 - n)).bit_length() - 1
    odd = (n - 1) >> twos
    return all(pow(a, odd, n) == 1 or any(pow(a, odd << i, n) == n - 1 for i in range(twos)) for a in bases)


def largest_prime(log_n: int, bits: int) -> int:
    """The largest prime below 2^bits that is 1 modulo 2N."""
    step = 2 << log_n
    return next(q for k in count(1) if is_prime(q := (1 << bits) - k * step + 1))


def primitive_root(log_n: int, q: int) -> int:
    """The first x^((q-1)/2N), over x = 2, 3, ..., of order exactly 2N."""
    powers = (pow(x, (q - 1) >> (log_n + 1), q) for x in count(2))
    return next(psi for psi in powers if pow(psi, 1 << log_n, q) == q - 1)


def main() -> None:
    """Writes or checks the file."""
    lines = []
    for log_n in (10, 13, 16, 17):
        n = 1 << log_n
        for bits in (30, 50, 61):
            q = largest_prime(log_n, bits)
            psi = primitive_root(log_n, q)
            coefficients = [word % q for word in islice(splitmix64(q), n)]
            fields = [log_n, q, psi]
            for index in (0, 1, 2, 5, n // 2, n // 2 + 77, n - 8, n - 1):
                reverse = int(format(index, f"0{log_n}b")[::-1], 2)
                point = pow(psi, 2 * reverse + 1, q)
                value = 0
                for c in reversed(coefficients):
                    value = (value * point + c) % q
                fields += [index, value]
            lines.append(" ".join(map(str, fields)) + "\n")
    finish(__file__, "".join(lines))


if __name__ == "__main__":
    main()
