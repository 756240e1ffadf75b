"""The package of key_switch.sv: primes, constants of conversions, and which chain does what in which slot.

For three 51-bit primes beside q_0: L = 3.
The schedule is found by search and checked rule by rule (doc/key_switch.md); the search is deterministic.
"""

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

Operation = tuple[str, int, int]  # kind, digit or half, prime (or -1)


@dataclass(frozen=True)
class Schedule:
    """Slots of one key switch, from its first: `period` slots after it the next one begins."""

    period: int
    slot: dict[Operation, int]
    chain: dict[Operation, int]
    # Own products: digit -> output slot, and the inverse transform in whose shadow it is taken.
    own: dict[int, tuple[int, Operation]]


def operations(digits: int) -> list[Operation]:
    """I: inverse of digit i. N: digit i to prime j. S: inverse of half k, special prime. R: it to prime j."""
    special = digits
    return [
        *(("I", i, i) for i in range(digits)),
        *(("N", i, j) for j in range(digits + 1) for i in range(digits) if i != j),
        *(("S", k, special) for k in range(2)),
        *(("R", k, j) for k in range(2) for j in range(digits)),
    ]


def check(digits: int, s: Schedule) -> None:
    """Every rule that memories and data flow put on a schedule. Results leave in the slot after."""
    period, slot = s.period, s.slot
    special, wide = digits, {0, digits}
    assert set(slot) == set(operations(digits)), "every operation once"
    assert all(0 <= n < 2 * period for n in slot.values()), "an operation is of this frame or the one before"
    assert len({(s.chain[op], n % period) for op, n in slot.items()}) == len(slot), (
        "one operation per chain and slot"
    )
    assert all(s.chain[op] == 0 for op in slot if op[2] in wide), "60-bit primes on the first chain"
    inputs = [slot["I", i, i] % period for i in range(digits)]
    assert len(set(inputs)) == digits, "one input port"
    writes: dict[int, list[int]] = {j: [] for j in range(digits + 1)}
    for (kind, i, j), n in slot.items():
        if kind == "N":
            start = slot["I", i, i]
            assert start + 2 <= n <= start + period, "a row is read between its making and the next one's"
            writes[j].append(n + 1)
    for i, (n, (kind, half, prime)) in s.own.items():
        carrier = (kind, half, prime)
        assert kind in "IS", "in the shadow of an inverse transform"
        assert n % period == (slot[carrier] + 1) % period, "when its result leaves"
        assert s.chain[carrier] == 0 or i not in wide, "on a chain as wide as the prime"
        assert 1 <= n < 2 * period, "of this frame or the one before"
        start = slot["I", i, i]
        assert start + 1 <= n <= start + 2 * period - 2, "within its two buffers"
        writes[i].append(n)
    assert len({carrier for _, carrier in s.own.values()}) == digits == len(s.own), "every own product once"
    for j in range(digits + 1):
        assert len({n % period for n in writes[j]}) == len(writes[j]) == digits, (
            "an accumulator takes one product at a time"
        )
    for k in range(2):
        n = slot["S", k, special]
        assert max(writes[special]) + 1 <= n < min(writes[special]) + period, (
            "a half is read when complete, not yet replaced"
        )
        for j in range(digits):
            r = slot["R", k, j]
            assert n + 2 <= r <= n + period, "a remainder is read between its making and the next one's"
            assert max(writes[j]) + 2 <= r + 1 < min(writes[j]) + period, (
                "a sum is taken when complete, not yet replaced"
            )

    for c in range(2):
        for times in (key_order(s, c), result_order(s, c)):
            assert not times or max(times)[0] < min(times)[0] + period, (
                "a port's beats are of one switch after another"
            )


def key_order(s: Schedule, chain: int) -> list[tuple[int, int, int]]:
    """The key's polynomials in the order of a chain's port: output slot, digit, prime."""
    products = [(n + 1, op[1], op[2]) for op, n in s.slot.items() if op[0] == "N" and s.chain[op] == chain]
    return sorted([*products, *((n, i, i) for i, (n, carrier) in s.own.items() if s.chain[carrier] == chain)])


def result_order(s: Schedule, chain: int) -> list[tuple[int, int, int]]:
    """Results and addends in the order of a chain's ports: output slot, half, prime."""
    return sorted((n + 1, op[1], op[2]) for op, n in s.slot.items() if op[0] == "R" and s.chain[op] == chain)


def input_order(s: Schedule) -> list[int]:
    """Digits in the order of the input port."""
    return [i for _, i in sorted((n, op[1]) for op, n in s.slot.items() if op[0] == "I")]


def attempt(digits: int, period: int, rnd: random.Random) -> Schedule | None:
    """Places one operation after another in an early free slot, some choices left to chance."""
    special, wide = digits, {0, digits}
    busy: set[tuple[int, int]] = set()
    slot: dict[Operation, int] = {}
    chain: dict[Operation, int] = {}
    writes: dict[int, list[int]] = {j: [] for j in range(digits + 1)}

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

    order = list(range(digits))
    rnd.shuffle(order)
    inputs: set[int] = set()
    for i in order:
        if not place(("I", i, i), 0, digits + 2, inputs):
            return None
        inputs.add(slot["I", i, i] % period)
    rnd.shuffle(order)
    products: list[Operation] = [("N", i, special) for i in range(digits)]
    rest: list[Operation] = [("N", i, j) for j in order for i in range(digits) if i != j]
    products += sorted(rest, key=lambda op: (order.index(op[2]), rnd.random()))
    for op in products:
        _, i, j = op
        start = slot["I", i, i]
        if not place(op, start + 2, start + period, {(n - 1) % period for n in writes[j]}):
            return None
        writes[j].append(slot[op] + 1)
    for k in range(2):
        if not place(("S", k, special), max(writes[special]) + 1, min(writes[special]) + period - 1, set()):
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
    last = [("R", k, j) for k in range(2) for j in range(digits)]
    for op in sorted(last, key=lambda op: (min(writes[op[2]]), rnd.random())):
        _, k, j = op
        n = slot["S", k, special]
        low, high = (
            max(n + 2, max(writes[j]) + 1),
            min(n + period, min(writes[j]) + period - 2, 2 * period - 1),
        )
        if not place(op, low, high, set()):
            return None
    schedule = Schedule(period, slot, chain, own)
    try:
        check(digits, schedule)
    except AssertionError:
        return None
    return schedule


def search(digits: int) -> Schedule:
    """The shortest period at which chance finds a schedule; never below what the transforms need."""
    wide = 5 + 2 * (digits - 1) + 1
    period = max(((digits + 1) * (digits + 2) + 1) // 2, wide)
    while True:
        rnd = random.Random(1)
        for _ in range(20000):
            if found := attempt(digits, period, rnd):
                return found
        period += 1


def primes(digits: int) -> list[Sparse]:
    """q_0, the narrow primes, the special prime."""
    return [WIDE[0], *NARROW[: digits - 1], WIDE[1]]


def chain_primes(digits: int, schedule: Schedule, chain: int) -> list[int]:
    """The primes that a chain computes with."""
    used = {op[2] for op in schedule.slot if schedule.chain[op] == chain}
    used |= {i for i, (_, carrier) in schedule.own.items() if schedule.chain[carrier] == chain}
    return sorted(used)


def threshold(q: int) -> int:
    """Residues y count as negative, as the software's fixed point has it, if `y >> 30` is at least this."""
    low, high = (1 << 52 + FRACTION_BITS) // q, (1 << 52 + FRACTION_BITS + SPLIT_BITS) // q
    # The low part never reaches the quotient: its share is below one.
    assert ((1 << SPLIT_BITS) - 1) * low >> 52 == 0
    return -(-(1 << 52 + FRACTION_BITS - 1) // high)


def bits(count: int) -> int:
    """Bits of a number below `count`."""
    return max(1, (count - 1).bit_length())


def case(name: str, width: int, argument: str, argument_width: int, values: dict[int, str]) -> list[str]:
    """A function as a table."""
    lines = [
        f"  function automatic logic [{width - 1}:0] {name}(input logic [{argument_width - 1}:0] {argument});"
    ]
    lines.append(f"    unique case ({argument})")
    lines += [f"      {argument_width}'d{key}: {name} = {value};" for key, value in values.items()]
    lines += [f"      default: {name} = '0;", "    endcase", "  endfunction", ""]
    return lines


def package(digits: int, schedule: Schedule) -> str:
    """The SystemVerilog package."""
    q = [prime.value for prime in primes(digits)]
    rows = digits + 2
    pw, rw, sw = bits(digits + 1), bits(rows), bits(schedule.period)
    chains = [chain_primes(digits, schedule, c) for c in range(2)]
    fields = {
        "Valid": 1, "Offset": 1, "Inverse": 1, "Sel": 3, "Prime": pw, "Source": 2, "Row": rw, "RowPrime": pw,
        "Target": 2, "TargetRow": rw, "First": 1, "Own": 1, "OwnOffset": 1, "OwnDigit": pw, "OwnFirst": 1,
    }  # fmt: skip
    width = sum(fields.values())
    first = {
        j: min(
            [schedule.slot[op] + 1 for op in schedule.slot if op[0] == "N" and op[2] == j]
            + [n for i, (n, _) in schedule.own.items() if i == j]
        )
        for j in range(digits + 1)
    }
    own = {
        (schedule.chain[carrier], (n - 1) % schedule.period): (i, n)
        for i, (n, carrier) in schedule.own.items()
    }
    lines = [
        f"// {BY}", f"// Key switching with {digits} digits of one prime each: L = {digits - 1}.",
        "package key_switch_pkg;",
        f"  localparam int unsigned Digits = {digits};",
        f"  localparam int unsigned Slots = {schedule.period};",
        f"  localparam int unsigned SlotWidth = {sw};",
        "  // Buffers of coefficients: of every digit, then of the two remainders modulo the special prime.",
        f"  localparam int unsigned Rows = {rows};",
        f"  localparam int unsigned RowWidth = {rw};",
        f"  localparam int unsigned PrimeWidth = {pw};",
    ]  # fmt: skip
    for c, name in enumerate("AB"):
        size = 19 * len(chains[c])
        forms = sum(primes(digits)[p].form(WIDTHS[c]) << 19 * i for i, p in enumerate(chains[c]))
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
    for c, name in enumerate("ab"):
        words = {}
        for n in range(schedule.period):
            word, remark = 0, "idle"
            for op, issued in schedule.slot.items():
                if schedule.chain[op] != c or issued % schedule.period != n:
                    continue
                kind, i, j = op
                source, row, row_prime, target, target_row = {
                    "I": (0, i, j, 0, i),
                    "N": (1, i, i, 1, 0),
                    "S": (2, i, j, 0, digits + i),
                    "R": (1, digits + i, digits, 2, i),
                }[kind]
                values = {
                    "Valid": 1, "Offset": issued // schedule.period, "Inverse": kind in "IS",
                    "Sel": chains[c].index(j), "Prime": j, "Source": source, "Row": row,
                    "RowPrime": row_prime,
                    "Target": target, "TargetRow": target_row, "First": first[j] == issued + 1,
                }  # fmt: skip
                word = sum(int(value) << at[field] for field, value in values.items())
                remark = f"{kind}{i}" + (f" mod q{j}" if kind in "NR" else "")
            if (c, n) in own:
                i, output = own[c, n]
                word |= (
                    1 << at["Own"] | (output - 1) // schedule.period << at["OwnOffset"] | i << at["OwnDigit"]
                )
                word |= int(first[i] == output) << at["OwnFirst"]
                remark += f", product of digit {i} modulo q{i}"
            words[n] = f"{width}'h{word:x};  // {remark}"
        lines += [line.replace(";;", ";") for line in case(f"schedule_{name}", width, "slot", sw, words)]
        lines = [line if ";  //" not in line else line.rstrip(";") for line in lines]
        lines += case(f"select_{name}", 3, "prime", pw, {p: f"3'd{i}" for i, p in enumerate(chains[c])})
    lines += case("modulus", 60, "prime", pw, {i: f"60'd{value}" for i, value in enumerate(q)})
    lines += ["  // A residue is negative if its bits from 30 on are at least this."]
    lines += case("threshold", 31, "prime", pw, {i: f"31'd{threshold(value)}" for i, value in enumerate(q)})
    lines += ["  // The inverse of the special prime."]
    lines += case(
        "special_inverse", 60, "prime", pw, {i: f"60'd{pow(q[digits], -1, q[i])}" for i in range(digits)}
    )
    lines += ["  // The modulus of a row modulo the prime it is converted to: {row prime, prime}."]
    pairs = {
        s << pw | t: f"60'd{q[s] % q[t]}" for s in range(digits + 1) for t in range(digits + 1) if s != t
    }
    lines += case("row_modulus", 60, "pair", 2 * pw, pairs)
    return "\n".join([*lines[:-1], "endpackage", ""])


def page(digits: int, s: Schedule) -> str:
    """The schedule and the orders of the ports, for people."""
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

    names_of = [", ".join(f"q{p}" for p in chain_primes(digits, s, c)) for c in range(2)]
    moduli = f"q{digits} is the special prime. Chain A computes modulo {names_of[0]}, B modulo {names_of[1]}."
    lines = [
        f"# Schedule for {digits} digits (L = {digits - 1})", "", BY, "",
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


def main() -> None:
    """Writes or checks the package for L = 3 and the page of its schedule."""
    schedule = search(4)
    finish("rtl/key_switch_pkg.sv", package(4, schedule))
    finish("doc/key_switch_schedule.md", page(4, schedule))


if __name__ == "__main__":
    main()
