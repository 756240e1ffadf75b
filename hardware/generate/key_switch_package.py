"""The package of key_switch.sv: primes, constants of conversions, and which chain does what in which slot.

`python key_switch_package.py` makes the package in rtl/, for L = 3 and digits of one prime. `variant(FOLDER, Shape(...))` makes one for other
levels, digits of several primes, or shorter transforms. The schedule is found by search and checked rule by rule
(doc/key_switch.md); the search is deterministic.
"""

import functools
import random
import sys
from dataclasses import dataclass
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "dv"))
from output import finish
from sparse import NARROW, WIDE, Sparse

BY = "Made by hardware/generate/key_switch_package.py."
# What a multiplier of each chain is wide.
WIDTHS = (60, 51)
FRACTION_BITS, SPLIT_BITS = 18, 30

Operation = tuple[str, int, int]  # kind, limb or digit or half, prime


@dataclass(frozen=True)
class Shape:
    """What a key switch is for: ciphertexts of `level + 1` primes in digits of `alpha`, and as many special primes.

    `gap`: slots, beside its own one, from the beginning of a result to the beginning of an operation that reads it. One from 8 lanes on, two for 4.
    """

    level: int
    alpha: int = 1
    gap: int = 1

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
    """I: inverse of limb i. N: digit i to prime j. S: inverse of half k, special prime j. R: its remainder to prime j."""
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
        made = [slot["S", k, j] for j in shape.specials]
        for j, n in zip(shape.specials, made, strict=True):
            assert max(writes[j]) + 1 + gap <= n < min(writes[j]) + period, (
                "a half is read when complete, no longer added to, not yet replaced"
            )
        for j in range(limbs):
            r = slot["R", k, j]
            assert max(made) + 1 + gap <= r <= min(made) + period, (
                "a remainder is read between its making and the next one's"
            )
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

    def place(op: Operation, low: int, high: int, taken: set[int]) -> bool:
        chains = [0] if op[2] in wide else ([1, 0] if rnd.random() < 0.7 else [0, 1])
        if op[0] == "I" and op[2] not in wide:
            chains = [1]
        options: list[tuple[int, int]] = []
        for n in range(low, high + 1):
            options += [(n, c) for c in chains if (c, n % period) not in busy and n % period not in taken]
            if options and rnd.random() < 0.75:
                break
        if not options:
            return False
        n, c = options[0] if rnd.random() < 0.8 else rnd.choice(options)
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
        made = [slot["S", k, p] for p in shape.specials]
        low = max(max(made) + 1 + gap, max(writes[j]) + 1)
        high = min(min(made) + period, min(writes[j]) + period - 2, 2 * period - 1)
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
            if found := attempt(shape, period, rnd):
                return found
        period += 1


def primes(shape: Shape) -> list[Sparse]:
    """q_0, the narrow primes, the special primes."""
    return [WIDE[0], *NARROW[: shape.level], *WIDE[1 : 1 + shape.alpha]]


def chain_primes(schedule: Schedule, chain: int) -> list[int]:
    """The primes that a chain computes with."""
    used = {op[2] for op in schedule.slot if schedule.chain[op] == chain}
    used |= {i for i, (_, carrier) in schedule.own.items() if schedule.chain[carrier] == chain}
    return sorted(used)


def share(prime: Sparse, y: int) -> int:
    """What a row's word contributes to the quotient, in fixed point: `floor(y / 2^(bits - 18))`.

    It is the software's, because the prime is just below a power of two (asserted): its `floor(2^(70 + 30) / q)` times `y >> 30` exceeds
    `2^(100 - bits) (y >> 30)` by less than what would reach the next integer, and the low part's share is below one.
    """
    q, bits = prime.value, prime.bits
    low, high = (1 << 52 + FRACTION_BITS) // q, (1 << 52 + FRACTION_BITS + SPLIT_BITS) // q
    power = 1 << 52 + FRACTION_BITS + SPLIT_BITS - bits
    assert ((1 << SPLIT_BITS) - 1) * low >> 52 == 0
    assert power <= high and (high - power) * (q >> SPLIT_BITS) < power
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
    """A number for every set of constants: of what to which prime. Number 0 is of none: rows of single primes are what they are."""
    keys = dict.fromkeys(
        conversion_of(op) for op in sorted(schedule.slot) if op[0] in "NR" or schedule.shape.alpha > 1
    )
    return {key: number for number, key in enumerate(keys, 1)}


def factors(shape: Shape, key: tuple[str, int, int]) -> tuple[list[int], list[int]]:
    """What the terms of a conversion are multiplied with, and the multiples of the sources' product, modulo its target.

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
            remark = f"{kind}{i}" + (f" mod q{j}" if kind in "NR" or shape.alpha > 1 and kind == "S" else "")
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
        f"// Key switching of {shape.limbs} primes in {len(shape.digits)} digits of {shape.alpha}: L = {shape.level}.",
        "package key_switch_pkg;",
        f"  localparam int unsigned Limbs = {shape.limbs};",
        "  // Primes of a digit, and special primes.",
        f"  localparam int unsigned Alpha = {shape.alpha};",
        f"  localparam int unsigned Slots = {schedule.period};",
        f"  localparam int unsigned SlotWidth = {sw};",
        "  // Slots that a result is given, beside its own one, before it is read.",
        f"  localparam int unsigned Gap = {shape.gap};",
        "  // Buffers of coefficients: of every digit's primes, then of both halves modulo the special primes.",
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
        if term != 1
    }
    default = "60'd1" if shape.alpha == 1 else "'0"
    lines += ["  // What a conversion multiplies its terms with, modulo its target: {conversion, term}."]
    lines += case("factor", 60, "index", cw + tw, terms, default)
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
    path = folder / "key_switch_pkg.sv"
    path.write_text(package(search(shape)), encoding="ascii")
    return path


def main() -> None:
    """Writes or checks the package for L = 3 and the page of its schedule."""
    schedule = search(Shape(3))
    finish("rtl/key_switch_pkg.sv", package(schedule))
    finish("doc/key_switch_schedule.md", page(schedule))


if __name__ == "__main__":
    main()
