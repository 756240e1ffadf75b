"""The ledger of the papers' claims: its pages are generated from records, and no figure is typed."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from harness.pages.prose import WIDTH, wrapped
from studies.bootstrapping_keys import grid
from studies.ledger.__main__ import pages
from studies.ledger.claims import FIRST, PAPERS, BadClaim, paper
from studies.ledger.claims import FOLDER as CLAIMS
from studies.ledger.expressions import Expressions
from studies.ledger.figures import HERE as FIGURES
from studies.ledger.key_sets import without_repeats
from studies.ledger.pages import FOLDER as DOCS
from studies.ledger.pages import page
from studies.ledger.records import NoFigure, Record, records, tables, value_of
from studies.planning_figures import weights

Write = Callable[..., Path]

PAGE = """# Title

## First

| work | N | ms | note |
|---|---:|---:|---|
| encrypt, public | 2^16 | 1.5 (1.25 to 2) | **1,234** |
| | 2^13 | 0.5 | - |

## Second

| work | N | ms | ms |
|---|---|---|---|
| encrypt, public | 2^16 | 7 | 9 |
"""


@pytest.fixture
def listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Record]:
    """Three small records."""
    (tmp_path / "page.md").write_text(PAGE)
    (tmp_path / "runs.jsonl").write_text(
        '{"case": {"depth": 16, "timed": true}, "s": [4.0, 1.0, 2.0]}\n'
        '{"case": {"depth": 9, "timed": true}, "s": [0.5]}\n'
        '{"case": {"depth": 9, "timed": false}, "bytes": 12}\n'
    )
    (tmp_path / "log.txt").write_text("94 keys, 1,842 MB\n")
    monkeypatch.setattr("studies.ledger.records.ROOT", tmp_path)
    return {
        "page": Record("page", "page.md", "make page", rows={"new": "#: Second; N: 2^16"}),
        "runs": Record("runs", "runs.jsonl", "make runs"),
        "log": Record("log", "log.txt", "make log"),
    }


def test_pages_are_what_the_records_make() -> None:
    stale = [path.name for path, text in pages().items() if path.read_text() != text]
    assert not stale, f"run `python -m studies.ledger` in benchmarks: {', '.join(stale)}"


def test_every_record_that_is_listed_is_there_and_used() -> None:
    written = [text for path, text in pages().items() if path.parent.name == "ledger"]
    patterns = ("figures.toml", "pictures.py", "blocks/*.md", "pages/*.md")
    texts = [path.read_text() for pattern in patterns for path in FIGURES.glob(pattern)]
    for record in records().values():
        assert record.text
        listed = any(f"| [{record.name}](" in text for text in written)
        assert listed or any(re.search(rf"\b{record.name}[.(\"]", text) for text in texts), record.name


def test_every_paper_has_a_page_with_five_lines_first() -> None:
    listed = records()
    papers = [paper(CLAIMS / f"{name}.toml", Expressions(listed)) for name in PAPERS]
    written = {
        path.relative_to(DOCS).as_posix(): text for path, text in pages().items() if DOCS in path.parents
    }
    for one in papers:
        assert sum(claim.first for claim in one.claims) == FIRST
        assert one.short in written["README.md"]
        lines = [line for line in written[f"ledger/{one.name}.md"].splitlines() if line.startswith("| ")]
        assert all(any(line.startswith(f"| {c.place} | {c.claim} |") for line in lines) for c in one.claims)


def test_a_line_says_that_its_record_was_made_once(listed: dict[str, Record], write: Write) -> None:
    listed["runs"] = Record("runs", "runs.jsonl", "make runs", once="one run")
    ours = '{median(runs("case.depth: 16")["s"]):.1f} s'
    one = paper(write(ours=ours, verdict="confirmed"), Expressions(listed))
    assert "2.0 s *(runs: one run)*" in page(one, listed)
    several = paper(write(ours='{log("(94) keys"):d}', verdict="confirmed"), Expressions(listed))
    assert "*(" not in page(several, listed)


def test_a_record_without_a_commit_has_that_of_the_page_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("studies.ledger.records.ROOT", tmp_path)
    folder = tmp_path / "benchmarks" / "record" / "day"
    folder.mkdir(parents=True)
    (folder / "runs.jsonl").write_text("{}\n")
    assert Record("runs", "benchmarks/record/day/runs.jsonl", "make").commits == []
    (folder / "runs.md").write_text("* Keywright commit 0123456789ab-dirty\n")
    assert Record("runs", "benchmarks/record/day/runs.jsonl", "make").commits == ["01234567-dirty"]
    (tmp_path / "page.md").write_text("# Computed from the runs\n")
    page_of_runs = Record("page", "page.md", "make", source="benchmarks/record/day/runs.jsonl")
    assert page_of_runs.commits == ["01234567-dirty"]


@pytest.mark.parametrize(
    ("expression", "figure"),
    [
        ('{median(runs("case.depth: 16")["s"]):.1f}', "2.0"),
        ('{min(runs("case.depth: 16")["s"]) + max(runs("case.depth: 16")["s"]):.0f}', "5"),
        ('{count(runs("case.timed: true; case.depth: 16")["s"]):d}', "3"),
        ('{-3 * runs("case.timed: false")["bytes"] / 2 ** 2:.1f}', "-9.0"),
        ('{page("#: First; N: 2^16")["note"]:,d}', "1,234"),
        ('{page("#: First; N: 2^16")["ms#3"]:.2f}', "2.00"),
        ('{page("work: encrypt, public; N: 2^13")["ms"]:.2f}', "0.50"),
        ('{page.new["ms 2"] - page.new["ms"]:d}', "2"),
        ('{log("keys, ([0-9,]+) MB"):,.0f}', "1,842"),
        ('{mean([1, 2, log("(94) keys")]):.2f}', "32.33"),
        ('{1000 * log("keys, ([0-9,]+) MB") / 7:,.0f}', "263,143"),
        ('{1000 * log("keys, ([0-9,]+) MB") / 7:2r}', "260,000"),
    ],
)
def test_an_expression_is_the_figure_of_its_record(
    listed: dict[str, Record], expression: str, figure: str
) -> None:
    assert Expressions(listed).fill(f"so {expression} ms") == f"so {figure} ms"


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ('{page("N: 2^12")["ms"]:.1f}', "no row with N: 2"),
        ('{page("N: 2^13")["s"]:.1f}', "no column 's'"),
        ('{page("N: 2^13")["note"]:.1f}', "no number 1 in '-'"),
        ('{page("N: 2^13")["ms#2"]:.1f}', "no number 2"),
        ('{page("work: encrypt, public")["ms"]:.1f}', "not one number"),
        ('{page.old["ms"]:.1f}', "names no rows 'old'"),
        ('{log("keys: 1")["ms"]:.1f}', "has no rows"),
        ('{log("([0-9])"):.1f}', "6 times"),
        ('{other("N: 1")["ms"]:.1f}', "no record 'other'"),
        ('{open("log.txt").read():.1f}', "not an expression of figures"),
        ('{runs.__class__["s"]:.1f}', "names no rows"),
        ("{(lambda: 1)():.1f}", "not an expression of figures"),
    ],
)
def test_what_is_no_figure_of_a_record_is_refused(
    listed: dict[str, Record], expression: str, message: str
) -> None:
    with pytest.raises(NoFigure, match=message):
        Expressions(listed).fill(expression)


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write the claims of a paper with one claim."""

    def write(**changes: str) -> Path:
        fields = {
            "place": "table 1",
            "claim": "c",
            "theirs": "2",
            "ours": "-",
            "verdict": "cannot be compared",
            **changes,
        }
        lines = "".join(f"{name} = '{value}'\n" for name, value in fields.items())
        path = tmp_path / "paper.toml"
        path.write_text(f'short = "P"\ntitle = "T"\nabout = "A"\n[[claim]]\n{lines}')
        return path

    return write


def test_a_claim_knows_its_records(listed: dict[str, Record], write: Write) -> None:
    ours = '{median(runs("case.depth: 16")["s"]):.1f} s of `N = 2^16`, ResNet-20'
    (claim,) = paper(write(ours=ours, verdict="confirmed"), Expressions(listed)).claims
    assert claim.ours == "2.0 s of `N = 2^16`, ResNet-20"
    assert claim.records == ("runs",)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"ours": "2.0 s", "verdict": "confirmed"}, "2.0 is typed"),
        ({"ours": '{log("(94) keys"):d} of 100', "verdict": "differs"}, "100 is typed"),
        ({"ours": "faster", "verdict": "confirmed"}, "by no record and no test"),
        ({"ours": "faster", "verdict": "probably"}, "is no verdict"),
        ({"theirs": "-", "verdict": "surpassed"}, "the paper has no figure"),
        ({"ours": "so", "verdict": "confirmed", "test": "tests/none.py"}, "there is no tests/none.py"),
    ],
)
def test_a_claim_with_nothing_behind_it_is_refused(
    listed: dict[str, Record], write: Write, changes: dict[str, str], message: str
) -> None:
    with pytest.raises(BadClaim, match=message):
        paper(write(**changes), Expressions(listed))


def test_a_record_names_its_commits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("studies.ledger.records.ROOT", tmp_path)
    (tmp_path / "log.txt").write_text(
        "Keywright commit 0123456789ab-dirty\ncommit 0123456789ab\ncommit 0123456789ab\n"
    )
    assert Record("log", "log.txt", "make log").commits == ["01234567-dirty", "01234567"]


def test_tables_of_a_page_are_rows_under_their_headings() -> None:
    first, second, third = tables(PAGE)
    assert first == {
        "#": "First",
        "work": "encrypt, public",
        "N": "2^16",
        "ms": "1.5 (1.25 to 2)",
        "note": "1,234",
    }
    assert second["work"] == first["work"]
    assert third["#"] == "Second"
    assert (third["ms"], third["ms 2"]) == ("7", "9")
    assert value_of(first, "ms") == 1.5


@pytest.mark.parametrize("before", range(WIDTH - 12, WIDTH))
def test_no_line_of_a_paragraph_begins_as_an_item(before: int) -> None:
    text = f"{'x' * before} at 60. The next sentence\n192. *Any* adds * a star\n1. One\n2. Two\n"
    lines = wrapped(text).splitlines()
    assert lines[-2:] == ["1. One", "2. Two"]
    assert not any(re.match(r"\d+\. |\* ", line) for line in lines[:-2])
    assert " ".join(lines).split() == text.split()


def test_prose_is_wrapped_and_nothing_else() -> None:
    words = "word " * 60
    table = "| " + "cell " * 60 + "|"
    code = "```sh\n" + "code " * 40 + "\n```"
    lines = wrapped(f"# H\n\n{words}\n{words}\n\n* {words}\n\n{table}\n\n{code}\n").splitlines()
    prose = [line for line in lines if line.startswith(("word", "* ", "  word"))]
    assert max(map(len, prose)) <= WIDTH
    assert sum(line.count("word") for line in prose) == 180
    assert table in lines
    assert ("code " * 40).rstrip() in lines
    assert all(line.count("`") % 2 == 0 for line in wrapped("`a b c` " * 40).splitlines())


def test_rotations_by_powers_of_two_are_the_fewest() -> None:
    """Compare with every sum of at most four steps in a group of sixteen."""
    for signed in (False, True):
        steps = [sign << bit for bit in range(4) for sign in ((1, -1) if signed else (1,))]
        fewest, sums = {0: 0}, {0}
        for hops in range(1, 5):
            sums = {(one + step) % 16 for one in sums for step in steps}
            for one in sums:
                fewest.setdefault(one, hops)
        assert list(weights.hops(4, signed)) == [fewest[index] for index in range(16)]
    rows = {row["weight"]: row for row in weights.rows(8)}
    assert all(row["binary"] == weight for weight, row in rows.items())
    assert rows[7]["signed"] < 3


def test_the_grid_of_primes_is_that_of_the_record_and_of_the_paper() -> None:
    record = records()["bootstrapping"]
    for alpha in grid.OUR_ALPHAS:
        column = grid.our_column(alpha)
        line = record.select(f"case.alpha: maximum; alpha: {alpha}")[0]
        assert (column.depth, sum(column.bits)) == (line["depth"], line["log_qp"])
        assert 0 <= column.unused < grid.SCALE
    stated = {1: 16, 4: 12, 5: 9, 6: 8, 7: 5, 8: 8, 9: 2, 10: 4}
    assert {alpha: grid.paper_column(alpha).depth for alpha in stated} == stated


def test_a_range_of_one_run_is_one_figure() -> None:
    text = "| All | 2.50 to 2.50 | 3.1 to 3.1 | 2.5 to 2.50 | 1 to 1 |\nfrom 7 to 7"
    assert without_repeats(text) == "| All | 2.50 | 3.1 | 2.5 to 2.50 | 1 |\nfrom 7 to 7"
