"""The cumulative tables of the discrete Gaussians of deviation 3.19, of which errors are, and 5, of which
flooding is made, with 100 digits, and samples drawn with the first.

Each line: a byte that fills the 32 bytes of entropy, the number of samples, their fold, the first sixteen.
The generator is ChaCha20 (RFC 8439's block with a 64-bit counter from 0), read in words of 64 bits; of each,
63 bits select the magnitude and the lowest the sign. The tables in the Rust sources must be those made here.
"""

import re
import sys
from bisect import bisect_right
from decimal import ROUND_HALF_EVEN, Decimal, localcontext
from pathlib import Path

from chacha import block
from files import finish, fold

CRATES = Path(__file__).parents[1] / "crates"


def cumulative(deviation: str, bits: int) -> list[int]:
    """round(2^bits P(|x| <= k)) for k from 0, as long as it is below 2^bits. The sum stops where terms are
    below 10^-300."""
    with localcontext() as context:
        context.prec = 100
        sigma = Decimal(deviation)
        weights = [(-Decimal(k * k) / (2 * sigma * sigma)).exp() for k in range(220)]
        total = weights[0] + 2 * sum(weights[1:])
        table, mass = [], weights[0]
        for k in range(len(weights)):
            mass += 2 * weights[k] if k else 0
            entry = int((mass / total * 2**bits).to_integral_value(ROUND_HALF_EVEN))
            if entry == 2**bits:
                break
            table.append(entry)
        return table


def check_source(path: str, table: list[int]) -> None:
    """Ends the program if the table of a Rust source is another one."""
    source = (CRATES / path).read_text(encoding="utf-8")
    declaration = source.partition("const CUMULATIVE")[2].partition("];")[0]
    if [int(number) for number in re.findall(r"\d+", declaration.partition("= [")[2])] != table:
        sys.exit(f"the table in {path} is not the one computed here:\n" + ",\n".join(map(str, table)))


def samples(entropy: bytes, count: int, table: list[int]) -> list[int]:
    """The first samples of a generator."""
    stream: list[int] = []
    for number in range((count + 7) // 8):
        words = block(entropy, [number, 0, 0, 0], 20)
        stream += [low | high << 32 for low, high in zip(words[::2], words[1::2], strict=True)]
    return [bisect_right(table, word >> 1) * (-1 if word & 1 else 1) for word in stream[:count]]


def main() -> None:
    """Writes or checks the file, and checks the source."""
    table = cumulative("3.19", 63)
    check_source("ring/src/randomness/gaussian.rs", table)
    check_source("ckks/src/flooding/wide_gaussian.rs", cumulative("5", 127))
    lines = []
    for byte in (0, 1, 0xC3):
        drawn = samples(bytes([byte] * 32), 4096, table)
        lines.append(" ".join(map(str, [byte, len(drawn), fold(drawn), *drawn[:16]])) + "\n")
    finish(__file__, "".join(lines))


if __name__ == "__main__":
    main()
