"""The package of key_switch.sv: primes, constants of conversions, and the schedule as words.

`python key_switch_package.py` makes the package in rtl/key_switch/, for L = 3 and digits of one prime;
`variant(FOLDER, shape)` makes one for another shape.
"""

import os
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "dv"))
from key_switch_schedule import (
    Operation,
    Schedule,
    Shape,
    chain_primes,
    input_order,
    key_order,
    result_order,
    search,
)
from output import finish
from sparse import NARROW, WIDE, Sparse

BY = "Made by hardware/generate/key_switch_package.py."
# What a multiplier of each chain is wide.
WIDTHS = (60, 51)
FRACTION_BITS, SPLIT_BITS = 18, 30


def primes(shape: Shape) -> list[Sparse]:
    """q_0, the narrow primes, the special primes."""
    return [WIDE[0], *NARROW[: shape.level], *WIDE[1 : 1 + shape.alpha]]


def share(prime: Sparse, y: int) -> int:
    """What a row's word contributes to the quotient, in fixed point: `floor(y / 2^(bits - 18))`.

    It is the software's, because the prime is just below a power of two (asserted): `floor(2^100 / q)` times
    `y >> 30` exceeds `2^(100 - bits) (y >> 30)` by too little to reach the next integer, and the low part's
    share is below one.
    """
    q, bits = prime.value, prime.bits
    low, high = (1 << 52 + FRACTION_BITS) // q, (1 << 52 + FRACTION_BITS + SPLIT_BITS) // q
    power = 1 << 52 + FRACTION_BITS + SPLIT_BITS - bits
    assert ((1 << SPLIT_BITS) - 1) * low >> 52 == 0
    assert power <= high
    assert (high - power) * (q >> SPLIT_BITS) < power
    return y >> bits - FRACTION_BITS


def bits(count: int) -> int:
    """Bits of a number below `count`."""
    return max(1, (count - 1).bit_length())


def case(
    name: str, width: int, argument: str, argument_width: int, values: dict[int, str], default: str = "'0"
) -> list[str]:
    """A function as a table."""
    lines = [
        f"  function automatic logic [{width - 1}:0] {name}(input logic [{argument_width - 1}:0] {argument});"
    ]
    lines.append(f"    unique case ({argument})")
    lines += [f"      {argument_width}'d{key}: {name} = {value};" for key, value in values.items()]
    lines += [f"      default: {name} = {default};", "    endcase", "  endfunction", ""]
    return lines


def conversion_of(operation: Operation) -> tuple[str, int, int]:
    """What an operation converts, and to which prime; both halves' remainders alike."""
    kind, i, j = operation
    return {
        "I": ("row", i, j), "N": ("digit", i, j), "S": ("row", j, j), "R": ("remainder", 0, j),
    }[kind]  # fmt: skip


def conversions(schedule: Schedule) -> dict[tuple[str, int, int], int]:
    """A number for every set of constants: of what to which prime. Number 0 is of none."""
    keys = dict.fromkeys(
        conversion_of(op) for op in sorted(schedule.slot) if op[0] in "NR" or schedule.shape.alpha > 1
    )
    return {key: number for number, key in enumerate(keys, 1)}


def factors(shape: Shape, key: tuple[str, int, int]) -> tuple[list[int], list[int]]:
    """What a conversion's terms are multiplied with, multiples of the sources' product; modulo its target.

    A row's word is `(x (Q / q_i)^-1) mod q_i` and `x = sum_i word_i (Q / q_i) - v Q`.
    """
    q = [prime.value for prime in primes(shape)]
    kind, first, target = key
    p = q[target]

    def product(members: list[int]) -> int:
        result = 1
        for member in members:
            result = result * q[member] % p
        return result

    if kind == "row":
        group = list(shape.specials if target in shape.specials else shape.digits[shape.digit_of(target)])
        return [pow(product([m for m in group if m != target]), -1, p)], []
    group = list(shape.specials if kind == "remainder" else shape.digits[first])
    terms = [product([m for m in group if m != member]) for member in group]
    if kind == "digit" and not shape.centred:
        assert shape.alpha == 1, "a word is the digit only if the digit has one prime"
        return terms, [0]
    return terms, [v * product(group) % p for v in range(1, len(group) + 1)]


def words(shape: Shape, schedule: Schedule, chain: int, at: dict[str, int]) -> dict[int, tuple[int, str]]:
    """The schedule's word of every slot of a chain, with a remark."""
    limbs, period = shape.limbs, schedule.period
    numbers, sels = conversions(schedule), chain_primes(schedule, chain)
    first = {
        j: min(
            [schedule.slot[op] + 1 for op in schedule.slot if op[0] == "N" and op[2] == j]
            + [n for i, (n, _) in schedule.own.items() if i == j]
        )
        for j in range(limbs + shape.alpha)
    }
    own = {(schedule.chain[carrier], (n - 1) % period): (i, n) for i, (n, carrier) in schedule.own.items()}
    result = {}
    for n in range(period):
        word, remark = 0, "idle"
        for op, issued in schedule.slot.items():
            if schedule.chain[op] != chain or issued % period != n:
                continue
            kind, i, j = op
            rows, sources = shape.sources(op) if kind in "NR" else ([], [])
            source, target, target_row = {
                "I": (0, 0, i),
                "N": (1, 1, 0),
                "S": (2, 0, limbs + i * shape.alpha + j - limbs),
                "R": (1, 2, i),
            }[kind]
            values = {
                "Valid": 1, "Offset": issued // period, "Inverse": kind in "IS", "Sel": sels.index(j),
                "Prime": j, "Source": source, "Row": rows[0] if rows else 0, "Half": i if kind in "SR" else 0,
                "Target": target, "TargetRow": target_row, "First": first[j] == issued + 1,
                "Conversion": numbers.get(conversion_of(op), 0),
                "Active": (1 << len(rows)) - 1,
                "Wide": sum(1 << t for t, source in enumerate(sources) if source in shape.wide),
            }  # fmt: skip
            word = sum(int(value) << at[field] for field, value in values.items())
            remark = f"{kind}{i}" + (
                f" mod q{j}" if kind in "NR" or (shape.alpha > 1 and kind == "S") else ""
            )
        if (chain, n) in own:
            i, output = own[chain, n]
            word |= 1 << at["Own"] | (output - 1) // period << at["OwnOffset"] | i << at["OwnPrime"]
            word |= int(first[i] == output) << at["OwnFirst"]
            remark += f", product of digit {shape.digit_of(i)} modulo q{i}"
        result[n] = (word, remark)
    return result


def package(schedule: Schedule) -> str:
    """The SystemVerilog package."""
    shape = schedule.shape
    q = [prime.value for prime in primes(shape)]
    rows = shape.limbs + 2 * shape.alpha
    pw, rw, sw = bits(len(q)), bits(rows), bits(schedule.period)
    chains = [chain_primes(schedule, c) for c in range(2)]
    numbers = conversions(schedule)
    cw, tw, vw = bits(len(numbers) + 1), bits(shape.alpha), bits(shape.alpha + 1)
    fields = {
        "Valid": 1, "Offset": 1, "Inverse": 1, "Sel": 3, "Prime": pw, "Source": 2, "Row": rw, "Half": 1,
        "Target": 2, "TargetRow": rw, "First": 1, "Own": 1, "OwnOffset": 1, "OwnPrime": pw, "OwnFirst": 1,
        "Conversion": cw, "Active": shape.alpha, "Wide": shape.alpha,
    }  # fmt: skip
    width = sum(fields.values())
    lines = [
        f"// {BY}",
        f"// Key switching at L = {shape.level}, digits of {shape.alpha}.",
        "package key_switch_pkg;",
        f"  localparam int unsigned Limbs = {shape.limbs};",
        "  // Primes of a digit, and special primes.",
        f"  localparam int unsigned Alpha = {shape.alpha};",
        f"  localparam int unsigned Slots = {schedule.period};",
        f"  localparam int unsigned SlotWidth = {sw};",
        "  // Slots that a result is given, beside its own one, before it is read.",
        f"  localparam int unsigned Gap = {shape.gap};",
        "  // Buffers of coefficients: of the ciphertext's primes, of both halves modulo the special ones.",
        f"  localparam int unsigned Rows = {rows};",
        f"  localparam int unsigned RowWidth = {rw};",
        f"  localparam int unsigned PrimeWidth = {pw};",
        f"  localparam int unsigned ConversionWidth = {cw};",
        f"  localparam int unsigned TermWidth = {tw};",
        f"  localparam int unsigned QuotientWidth = {vw};",
    ]  # fmt: skip
    for c, name in enumerate("AB"):
        size = 19 * len(chains[c])
        forms = sum(primes(shape)[p].form(WIDTHS[c]) << 19 * i for i, p in enumerate(chains[c]))
        lines += [
            f"  localparam int unsigned Width{name} = {WIDTHS[c]};",
            f"  localparam int unsigned Count{name} = {len(chains[c])};",
            f"  localparam int unsigned SelWidth{name} = {bits(len(chains[c]))};",
            f"  localparam logic [{size - 1}:0] Moduli{name} = {size}'h{forms:x};",
        ]
    lines += [
        "",
        "  // Words of the schedule: positions and widths of their fields.",
        f"  localparam int unsigned WordWidth = {width};",
    ]
    position, at = 0, {}
    for field, size in fields.items():
        lines.append(f"  localparam int unsigned {field} = {position};")
        at[field] = position
        position += size
    lines += ["  localparam logic [1:0] FromInput = 2'd0, FromRow = 2'd1, FromSum = 2'd2;"]
    lines += ["  localparam logic [1:0] ToRow = 2'd0, ToSum = 2'd1, ToResult = 2'd2;", ""]
    lines += [
        "  // From a row to what the transform takes: modulus_raise, or modulus_convert with that many terms."
    ]
    lines += ["  function automatic int unsigned raise_latency(input int unsigned terms);"]
    lines += ["    raise_latency = terms == 1 ? 4 : 11 + terms;", "  endfunction", ""]
    for c, name in enumerate("ab"):
        values = {
            n: f"{width}'h{word:x};  // {remark}"
            for n, (word, remark) in words(shape, schedule, c, at).items()
        }
        table = case(f"schedule_{name}", width, "slot", sw, values)
        lines += [line if ";  //" not in line else line.rstrip(";") for line in table]
        lines += case(f"select_{name}", 3, "prime", pw, {p: f"3'd{i}" for i, p in enumerate(chains[c])})
    lines += case("modulus", 60, "prime", pw, {i: f"60'd{value}" for i, value in enumerate(q)})
    lines += ["  // The inverse of the special primes' product."]
    inverses = {}
    for i in range(shape.limbs):
        product = 1
        for special in shape.specials:
            product = product * q[special] % q[i]
        inverses[i] = f"60'd{pow(product, -1, q[i])}"
    lines += case("special_inverse", 60, "prime", pw, inverses)
    constants = {number: factors(shape, key) for key, number in numbers.items()}
    terms = {
        number << tw | t: f"60'd{term}"
        for number, (factors_of, _) in constants.items()
        for t, term in enumerate(factors_of)
        if shape.alpha > 1
    }
    lines += ["  // What a conversion multiplies its terms with, modulo its target: {conversion, term}."]
    lines += case("factor", 60, "index", cw + tw, terms)
    lines += ["  // What it subtracts, by quotient: multiples of the product of its sources' primes."]
    wholes = {
        number << vw | v: f"60'd{whole}"
        for number, (_, multiples) in constants.items()
        for v, whole in enumerate(multiples, 1)
    }
    lines += case("whole", 60, "index", cw + vw, wholes)
    for source in primes(shape):
        share(source, source.value - 1)
    return "\n".join([*lines[:-1], "endpackage", ""])


def page(s: Schedule) -> str:
    """The schedule and the orders of the ports, for people."""
    shape = s.shape
    assert shape.alpha == 1
    names = {
        "I": "INTT of digit {i}",
        "N": "digit {i} to q{j}",
        "S": "INTT of half {i}",
        "R": "remainder {i} to q{j}",
    }
    own = {(s.chain[carrier], (n - 1) % s.period): (i, n - 1) for i, (n, carrier) in s.own.items()}

    def cell(chain: int, n: int) -> str:
        text = "idle"
        for (kind, i, j), issued in s.slot.items():
            if s.chain[kind, i, j] == chain and issued % s.period == n:
                text = names[kind].format(i=i, j=j) + (" (switch before)" if issued >= s.period else "")
        if (chain, n) in own:
            i, issued = own[chain, n]
            text += f"; digit {i} times its key" + (" (switch before)" if issued >= s.period else "")
        return text

    def order(items: list[tuple[int, int, int]], form: str) -> str:
        return ", ".join(form.format(a=a, b=b) for _, a, b in items)

    names_of = [", ".join(f"q{p}" for p in chain_primes(s, c)) for c in range(2)]
    special = shape.limbs
    moduli = (
        f"q{special} is the special prime. Chain A computes modulo {names_of[0]}, B modulo {names_of[1]}."
    )
    lines = [
        f"# Schedule for {shape.limbs} digits (L = {shape.level})", "", BY, "",
        f"A frame is {s.period} slots, a slot the time of one polynomial. Results leave one later.", "",
        "| slot | chain A, 60 bits | chain B, 51 bits |", "|---:|---|---|",
        *(f"| {n} | {cell(0, n)} | {cell(1, n)} |" for n in range(s.period)), "",
        moduli, "",
        "| port | frames of a switch, in order |", "|---|---|",
        f"| `s_axis_digit` | digits {', '.join(map(str, input_order(s)))} |",
    ]  # fmt: skip
    for c, name in enumerate("ab"):
        results = order(result_order(s, c), "half {a} modulo q{b}")
        lines.append(f"| `s_axis_key_{name}` | {order(key_order(s, c), 'digit {a} modulo q{b}')} |")
        lines.append(f"| `s_axis_addend_{name}`, `m_axis_{name}` | {results} |")
    last = max(n for n, _, _ in [*result_order(s, 0), *result_order(s, 1)])
    lines += [
        "",
        f"The last result of a switch begins {last} slots (and the pipeline's latency) after its frame.",
    ]
    return "\n".join([*lines, ""])


def variant(folder: Path, shape: Shape) -> Path:
    """Writes the package of another shape; its path."""
    path, text = folder / "key_switch_pkg.sv", package(search(shape))
    # Tests in several processes make and read it at the same time.
    if not path.exists() or path.read_text(encoding="ascii") != text:
        part = folder / f"{os.getpid()}.part"
        part.write_text(text, encoding="ascii")
        part.replace(path)
    return path


def main() -> None:
    """Writes or checks the package for L = 3 and the page of its schedule."""
    schedule = search(Shape(3))
    finish("rtl/key_switch/key_switch_pkg.sv", package(schedule))
    finish("doc/key_switch_schedule.md", page(schedule))


if __name__ == "__main__":
    main()
