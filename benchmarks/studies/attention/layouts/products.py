"""Operations of attention's products, by the layouts of the literature beside a compiled program.

    cd benchmarks && python -m studies.attention.layouts.products --shape TOKENS,HEADS,WIDTH[,SENTENCES]
        [--program program.kwp] [--slots 32768] [--out FOLDER]

For each layout, a row counts the operations of the scores (queries by keys) and of the mixes (weights by
values) of one layer. `diagonals` is what the compiler does: its rows are read from the first two products of
a program, and a row of its own has the predicted seconds of the whole by kind of layer.

`tricyclic` (ePrint 2025/1200): the heads' matrices are stored along the diagonal of a box whose sides have no
common divisor, which the heads, tokens and features are padded to. A product sums ``inner`` products of
rotated ciphertexts; the rotations of the left factor are cut in baby and giant steps. The result is repeated
for the next product, which takes a mask, and a level. Rows also have the map that brings a left factor into
the box from where the compiler stores it, feature by feature: its diagonals, rotations and seconds.

`columns` (interleaved batches of MOAI, ePrint 2025/991): a ciphertext has one feature of all tokens of as
many sentences as fit; scores are stored by diagonals, and rotations of both factors are cut in baby and giant
steps.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from math import ceil, gcd, log2
from pathlib import Path

import numpy as np
from harness.folders import record_folder
from keywright import compiler
from keywright.compiler import Program
from keywright.compiler.layout.lowering import best_n1
from keywright.compiler.placement.costs import CostTable
from keywright.program.operands.layout import next_power_of_two
from numpy.typing import NDArray

from studies.attention.process import append, command

MARGIN = 16
"""By how much a side of the box may be longer than what it holds."""


@dataclass(frozen=True)
class Shape:
    """Products of a stack of ``heads`` matrices (rows, inner) by (inner, columns)."""

    heads: int
    rows: int
    inner: int
    columns: int


@dataclass(frozen=True)
class Counts:
    """Operations of one product.

    Attributes:
        sentences: that it serves together.
        ciphertexts: of the left factor, the right one, and the result.
        rotations, relinearizations: key switches.
        steps: different rotations, each of which needs a key.
        products: of ciphertexts.
        levels: with those to store the result for the next product.
    """

    sentences: int
    ciphertexts: tuple[int, int, int]
    rotations: int
    relinearizations: int
    steps: int
    products: int
    levels: int


@dataclass(frozen=True)
class Box:
    """Sides of a tricyclic layout: element (h, r, c) of the left factor is at every slot s with
    ``s = h mod heads, s = r mod rows, s = c mod inner``, and so on."""

    heads: int
    rows: int
    inner: int
    columns: int
    giants: bool
    """Whether giant steps are taken, which read further."""

    @property
    def stored(self) -> int:
        """Slots of the result."""
        return self.heads * self.rows * self.columns

    @property
    def reach(self) -> int:
        """Slots that a product reads, behind the longest rotations."""
        sides = self.rows + self.columns if self.giants else max(self.rows, self.columns)
        return self.stored + self.heads * self.inner * sides

    @property
    def doublings(self) -> int:
        """How often a stored result is doubled until a product can read it behind all rotations."""
        return ceil(log2(self.reach / self.stored))

    @property
    def steps(self) -> tuple[int, int]:
        """Baby and giant steps with the fewest key switches; the terms of a giant step are relinearised."""
        pairs = ((babies, ceil(self.inner / babies)) for babies in range(1, self.inner + 1))
        return min(pairs, key=lambda pair: pair[0] + 2 * pair[1]) if self.giants else (self.inner, 1)


def box(shape: Shape, slots: int) -> Box | None:
    """The smallest sides without a common divisor that hold a product; None if the slots do not."""
    best: Box | None = None
    for heads in range(shape.heads, shape.heads + 4):
        for rows in _coprime(shape.rows, heads):
            for inner in _coprime(shape.inner, heads * rows):
                columns = next(_coprime(shape.columns, heads * rows * inner), None)
                if columns is None:
                    continue
                for giants in (True, False):
                    tried = Box(heads, rows, inner, columns, giants)
                    if tried.reach <= slots and (best is None or _order(tried) < _order(best)):
                        best = tried
    return best


def _order(sides: Box) -> tuple[int, bool, int]:
    return sides.inner, not sides.giants, sides.stored


def _coprime(least: int, other: int) -> Iterator[int]:
    return (size for size in range(least, least + MARGIN) if gcd(size, other) == 1)


def stacked(shape: Shape, slots: int) -> tuple[int, Shape, Box]:
    """The fewest stacks that the slots hold, the shape of one, and its box."""
    stacks, each, sides = 1, shape, box(shape, slots)
    while sides is None:
        stacks += 1
        each = replace(shape, heads=ceil(shape.heads / stacks))
        sides = box(each, slots)
    return stacks, each, sides


def into_box(shape: Shape, sides: Box, slots: int) -> NDArray[np.bool_]:
    """The diagonals, (slots,), of the map that brings a left factor into its box once. Its rows are
    neighbours, and it repeats after the next power of two; diagonals within that are used."""
    head, feature, row = np.indices((shape.heads, shape.inner, shape.rows))
    every = sides.heads * sides.rows * sides.inner
    places = np.zeros(head.shape, np.int64)
    for rest, divisor in ((head, sides.heads), (row, sides.rows), (feature, sides.inner)):
        other = every // divisor
        places += rest * other * pow(other, -1, divisor)
    period = min(next_power_of_two(head.size), slots)
    used = np.zeros(slots, bool)
    used[((head * shape.inner + feature) * shape.rows + row - places % every) % period] = True
    return used


def conversion(shape: Shape, slots: int, level: int = 6) -> dict[str, float]:
    """What these maps take for all stacks, with the fewest seconds at a level."""
    stacks, each, sides = stacked(shape, slots)
    used, costs = into_box(each, sides, slots), CostTable.default()
    babies, seconds = best_n1(used[None], costs.prices(level))
    steps = np.flatnonzero(used)
    rotations = sum(int(np.count_nonzero(np.unique(part))) for part in divmod(steps, babies))
    counts = {"box_diagonals": len(steps), "box_rotations": rotations, "box_seconds": seconds}
    return {name: stacks * count for name, count in counts.items()}


def tricyclic(shape: Shape, slots: int) -> Counts:
    """A product in as few stacks as the slots hold, one after the other."""
    stacks, _, sides = stacked(shape, slots)
    babies, giants = sides.steps
    partly = sides.stored << sides.doublings > slots and sides.doublings > 1  # the last one, of a part
    rotations = (babies - 1) + (sides.inner - 1) + (giants - 1) + sides.doublings + partly
    return Counts(
        1, (stacks, stacks, stacks), stacks * rotations, stacks * giants, rotations, stacks * sides.inner, 2
    )


def columns(shape: Shape, slots: int, *, diagonal: bool) -> Counts:
    """A product of as many sentences as fit, of ciphertexts of one feature each; ``diagonal`` if the left
    factor is stored by diagonals, as the weights are, and otherwise the result. Baby steps rotate the right
    factor; giant steps the left one and the sums, of which one has a ciphertext for each feature and the
    other one for each diagonal."""
    tokens, width = shape.rows, shape.columns if diagonal else shape.inner
    features, diagonals = shape.heads * width, shape.heads * tokens
    babies = baby_steps(shape.heads, features, tokens)
    giants = tokens // babies
    left, result = (diagonals, features) if diagonal else (features, diagonals)
    return Counts(
        slots // tokens, (left, features, result),
        _rotations(shape.heads, features, tokens, babies),
        features * giants if diagonal else diagonals, babies + giants - 2, features * tokens, 1,
    )  # fmt: skip


def baby_steps(heads: int, features: int, tokens: int) -> int:
    """Baby steps with the fewest rotations of `columns`, a divisor of the tokens."""
    divisors = (size for size in range(1, tokens + 1) if tokens % size == 0)
    return min(divisors, key=lambda babies: _rotations(heads, features, tokens, babies))


def _rotations(heads: int, features: int, tokens: int, babies: int) -> int:
    return features * (babies - 1 + tokens // babies - 1) + heads * (tokens - babies)


def compiled(program: Program) -> list[Counts]:
    """The first product of a program, which is stored by diagonals, and the next, which reads it."""
    names = list(dict.fromkeys(
        layer.name for layer in program.layers if layer.kind == "multiply" and "MatMul" in layer.name
    ))  # fmt: skip
    return [_of_layers(program, name) for name in names[:2]]


def _of_layers(program: Program, name: str) -> Counts:
    layers = [layer for layer in program.layers if layer.name == name]
    within = {index for layer in layers for index in range(layer.start, layer.stop)}
    switches = [each for each in program.key_switches if each.instruction in within]
    turned = [each for each in switches if each.kind == "rotation"]
    place = next(index for index, layer in enumerate(layers) if layer.kind == "multiply")
    spread = {layer.output_level for layer in layers[:place]}
    products = sum(program.instructions[index].opcode == "mul" for index in within)
    return Counts(
        program.batch, (0, 0, 0), sum(each.count for each in turned),
        sum(each.count for each in switches if each.kind == "relinearization"),
        len({(each.log_n, each.step) for each in turned}), products,
        len(spread) + len(layers[place:]),
    )  # fmt: skip


def main() -> None:
    """Count and record."""
    parser = command("studies.attention.layouts.products", __doc__)
    parser.add_argument(
        "--shape", type=_sizes, required=True, help="tokens, heads, width of a head, sentences"
    )
    parser.add_argument("--program", type=Path, help="of a model of this shape")
    parser.add_argument("--slots", type=int, default=1 << 15, help="of a ciphertext (default: 32768)")
    parser.add_argument("--out", type=Path, help="folder (default: record/DATE-attention-products)")
    options = parser.parse_args()
    file = record_folder(options.out, "attention-products") / "products.jsonl"
    tokens, heads, width, sentences = options.shape
    shapes = {
        "scores": Shape(heads * sentences, tokens, width, tokens),
        "mixes": Shape(heads * sentences, tokens, tokens, width),
    }
    rows = {
        (name, "tricyclic"): replace(tricyclic(each, options.slots), sentences=sentences)
        for name, each in shapes.items()
    }
    for name, each in shapes.items():
        alone = Shape(heads, each.rows, each.inner, each.columns)
        rows[name, "columns"] = columns(alone, options.slots, diagonal=name == "mixes")
    if options.program is not None:
        program = compiler.load(options.program)
        kinds: defaultdict[str, float] = defaultdict(float)
        for layer in program.layers:
            kinds[layer.kind] += layer.seconds
        append(file, {"tokens": tokens, "heads": heads, "sentences": program.batch, "seconds": kinds})
        rows |= {(name, "diagonals"): each for name, each in zip(shapes, compiled(program), strict=True)}
    for (name, layout), counts in rows.items():
        row = {"tokens": tokens, "heads": heads, "width": width, "product": name, "layout": layout}
        row |= conversion(shapes[name], options.slots) if layout == "tricyclic" else {}
        append(file, row | asdict(counts))
        print(row | asdict(counts), flush=True)


def _sizes(text: str) -> tuple[int, int, int, int]:
    try:
        sizes = tuple(map(int, text.split(",")))
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not TOKENS,HEADS,WIDTH[,SENTENCES]") from error
    if len(sizes) not in (3, 4) or min(sizes) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not TOKENS,HEADS,WIDTH[,SENTENCES]")
    tokens, heads, width, *rest = sizes
    return tokens, heads, width, rest[0] if rest else 1


if __name__ == "__main__":
    main()
