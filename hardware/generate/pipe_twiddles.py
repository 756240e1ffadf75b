"""Writes the tables of twiddle_generator.sv for a list of primes, what is not made on the fly, and those of
twiddle_memory.sv, which has every factor.

The root of unity is the software's: the smallest primitive one of the form x^((q-1)/2N).
"""

from collections.abc import Iterable
from pathlib import Path


def reversed_bits(x: int, bits: int) -> int:
    """`x` with its bits in reverse."""
    return int(format(x, f"0{bits}b")[::-1], 2) if bits else 0


def root(q: int, log_n: int) -> int:
    """The primitive 2N-th root of unity modulo `q` that the software takes."""
    return next(r for x in range(2, q) if pow(r := pow(x, (q - 1) >> log_n + 1, q), 1 << log_n, q) == q - 1)


def log_lanes(log_n: int) -> int:
    """The pipeline's words a beat, as `ntt_pkg::log_lanes` has it."""
    return (log_n + 3) // 4


def write(path: Path, words: Iterable[int]) -> None:
    """A memory file for `$readmemh`."""
    path.write_text("".join(f"{word:x}\n" for word in words), encoding="utf-8")


def tables(prefix: Path, primes: list[int], log_n: int, width: int) -> None:
    """The files `prefix-{inverse,forward}.{rows,single}` and `prefix-factor.{full,serial}`.

    Bases are plain; factors are scaled to the multiplier's width. A line of `full` holds those of a beat.
    """
    k, lanes = log_lanes(log_n), 1 << log_lanes(log_n)
    half = 2 * k
    block = log_n - half  # bits of a block's number
    rows: dict[bool, list[int]] = {True: [], False: []}
    single: dict[bool, list[int]] = {True: [], False: []}
    full, serial = [], []
    for q in primes:
        psi, shift = root(q, log_n), width - q.bit_length()
        for inverse in (False, True):
            unit = pow(psi, -1, q) if inverse else psi
            rows[inverse] += [pow(unit, 1 + 2 * reversed_bits(s, block), q) for s in range(1 << block)]
            # Transforms of the other direction have one base for all blocks of this half.
            single[not inverse].append(pow(unit, 1 << block, q))
            omega = pow(unit, 1 << block + 1, q)
            slots = [(g, v) for g in range(k) for v in range(1 << g)]
            for beat in range(lanes):
                words = [
                    pow(omega, (reversed_bits(beat, k) + (v << k)) << (k - 1 - g), q) << shift
                    for g, v in slots
                ]
                full.append(sum(word << width * e for e, word in enumerate(words)))
            serial += [pow(omega, v << (half - 1 - g), q) << shift for g, v in slots] + [0]
    for inverse, name in ((True, "inverse"), (False, "forward")):
        write(prefix.with_name(f"{prefix.name}-{name}.rows"), rows[inverse])
        write(prefix.with_name(f"{prefix.name}-{name}.single"), single[inverse])
    write(prefix.with_name(f"{prefix.name}-factor.full"), full)
    write(prefix.with_name(f"{prefix.name}-factor.serial"), serial)


def lines(prefix: Path, primes: list[int], log_n: int, width: int) -> None:
    """The files `prefix-{inverse,forward}.{beats,blocks,other-beats,other-blocks}`: factors of both halves.

    A line holds the factors of a beat, or those of a block; `other` is of the direction that has one base.
    """
    k, lanes = log_lanes(log_n), 1 << log_lanes(log_n)
    half = 2 * k
    block = log_n - half
    slots = [(g, v) for g in range(k) for v in range(1 << g)]

    def line(factors: Iterable[int]) -> int:
        return sum(factor << width * e for e, factor in enumerate(factors))

    for rows, name in ((True, "inverse"), (False, "forward")):
        lines: dict[str, list[int]] = {}
        for q in primes:
            psi = root(q, log_n)
            for inverse in (False, True):
                unit = pow(psi, -1, q) if inverse else psi
                omega = pow(unit, 1 << block + 1, q)
                if inverse == rows:
                    bases, kind = (
                        [pow(unit, 1 + 2 * reversed_bits(s, block), q) for s in range(1 << block)],
                        "",
                    )
                else:
                    bases, kind = [pow(unit, 1 << block, q)], "other-"
                for base in bases:
                    powers = [pow(base, 1 << i, q) for i in range(half)]
                    lines.setdefault(f"{kind}blocks", []).append(
                        line(powers[half - 1 - g] * pow(omega, v << (half - 1 - g), q) % q for g, v in slots)
                    )
                    lines.setdefault(f"{kind}beats", []).extend(
                        line(
                            powers[k - 1 - g]
                            * pow(omega, (reversed_bits(beat, k) + (v << k)) << (k - 1 - g), q)
                            % q
                            for g, v in slots
                        )
                        for beat in range(lanes)
                    )
        for kind, words in lines.items():
            write(prefix.with_name(f"{prefix.name}-{name}.{kind}"), words)
