"""The prose check finds what its rules name, and nothing in code, tables and links."""

from pathlib import Path

import prose
import pytest


def faults(text: str) -> list[str]:
    return [what for _, what in prose.findings(text)]


@pytest.mark.parametrize(
    ("text", "part"),
    [
        (f"{'word ' * 23}over.\n{'x' * 121}\n", "characters"),
        (f"One {'word ' * prose.WORDS}more.\n", "words"),
        ("The key leaves for want of room.\n", "for want of"),
        ("A pool waits. Who wants none, asks.\n", "Who wants"),
        ("The level is to be lowered.\n", "is to be lowered"),
        ("Two ways:\n* one\n* two\n", "empty line"),
        ("Steps:\n1. one\n", "empty line"),
        ("It is at most `2^-(bits/2\n+ 2)`.\n", "inside code"),
        ("* It is `1 - C(B\n  - c, k)`.\n", "inside code"),
    ],
)
def test_each_rule_finds_something(text: str, part: str) -> None:
    assert any(part in what for what in faults(text))


def test_the_phrase_of_every_rule_is_found() -> None:
    samples = [
        "for want of it",
        "says nothing about it",
        "gives it away",
        "went past it",
        "who keeps it",
        "whoever it is",
        "as large as it can be",
        "is to be moved",
        "all the same",
        "in its midst",
        "comes to be",
        "dearer",
        "told apart",
        "beside those",
        "in the place of it",
        "to be had",
        "of so many",
        "given back",
        "in its stead",
        "a file that is none",
        "where not given",
        "what came",
    ]
    assert len(samples) == len(prose.PHRASES)
    for sample in samples:
        assert len(faults(f"Well; {sample}.\n")) == 1, sample


def test_the_clause_of_every_rule_is_found_where_users_read() -> None:
    samples = [
        "So the key is small.",
        "The table lists what was found.",
        "Choose what is wanted.",
        "The bounds are those of the table.",
        "It takes the arguments as of `load`.",
        "It keeps 99% of them.",
    ]
    assert len(samples) == len(prose.CLAUSES)
    for sample in samples:
        page = f"A key is made. {sample}\n"
        assert len(prose.findings(page, clauses=True)) == 1, sample
        assert faults(page) == []


def test_lists_with_code_are_left_alone() -> None:
    assert not faults("Two names:\n\n* `one`, in `a\n  b`\n* `two`\n- `three\n\n* four\n")


def test_natural_clauses_pass() -> None:
    page = (
        "So far, no key was made. Its errors exceed those of the parts. State what is missing, as of 2026.\n"
    )
    assert prose.findings(page, clauses=True) == []


def test_a_row_of_short_sentences_is_found_and_lists_are_none() -> None:
    short = "The key is small."
    assert (
        faults(f"{' '.join([short] * prose.ROW)} A sentence that is longer than that one follows here.\n")
        == []
    )
    assert len(faults(f"{' '.join([short] * (prose.ROW + 1))}\n")) == 1
    assert faults("1. *Steps.* There are two. They follow each other. At 0 .. 3 they end.\n") == []
    assert faults(f"{short}\n" + "".join(f"\n* {short}" for _ in range(9)) + "\n") == []


def test_code_tables_links_and_headings_are_left_alone() -> None:
    long = "y" * 200
    text = f"# {long}\n\n| {long} |\n\n```python\n# dearer {long}\n```\n\n    {long} dearer\n\n"
    text += f"See `dearer` [there](https://e.org/{long}).\n"
    assert faults(text) == []


def test_lists_sentences_and_wrapped_numbers() -> None:
    text = "Two ways:\n\n* one, which goes on\n  in a second line\n* two\n\nIt was 3 to\n4. Then it was 5.\n"
    assert faults(text) == []


def test_a_sentence_may_have_as_many_words_as_the_rule_says() -> None:
    words = ["word"] * prose.WORDS
    assert faults("\n".join(words) + ".\n") == []
    assert len(faults("\n".join([*words, "more"]) + ".\n")) == 1


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("a.rs", "/// Fine.\nfn dearer() {\n    // This is\n    // dearer.\n}\n"),
        ("a.sv", "// Fine.\nlogic dearer;\n// This is\n// dearer.\n"),
        ("a.toml", "# Fine.\ndearer = 1\n# This is\n# dearer.\n"),
        ("Makefile", "# Fine.\ndearer:\n# This is\n# dearer.\n"),
        ("a.py", "# Fine.\ndearer = 1\n# This is\n# dearer.\n"),
        ("a.ts", "/** Fine. */\nconst dearer = 1;\n/**\n * This is dearer. */\n"),
    ],
)
def test_comments_are_checked_and_code_is_not(tmp_path: Path, name: str, source: str) -> None:
    file = tmp_path / name
    file.write_text(source)
    line = 4 if name == "a.ts" else 3
    assert prose.check(file) == [(line, '"dearer": use `more expensive` or `slower`')]


PYTHON = '''"""A module.

    dearer = "code in a docstring"
"""


def cost(price: float) -> float:
    """Return a cost.

    Args:
        price: fine.
        other: this entry is
            dearer.

    Raises:
        ValueError: it is dearer.
    """
    dearer = "this is dearer, and no message"  # noqa: dearer
    if price < 0:
        raise ValueError(f"price {price} is told "
                         "apart from the rest")
    parser.add_argument("--x", help="the dearer one")
    return price
'''


def test_docstrings_errors_and_help_texts_of_python_are_checked(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_text(PYTHON)
    assert [(line, what.split(":")[0]) for line, what in prose.check(file)] == [
        (12, '"dearer"'),
        (16, '"dearer"'),
        (20, '"told apart"'),
        (22, '"dearer"'),
    ]


USED = '''"""So a module begins."""


class Key:
    """So a class begins."""

    def size(self) -> int:
        """So a method begins."""
        raise ValueError("So an error begins.")

    def _size(self) -> int:
        """So a private name is left alone."""  # So is a comment.
        parser.add_argument("--x", help="So a help text begins.")
'''


def test_clauses_are_looked_for_in_what_users_of_python_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prose, "ROOT", tmp_path)
    file = tmp_path / "python/keywright/a.py"
    file.parent.mkdir(parents=True)
    file.write_text(USED)
    assert [line for line, what in prose.check(file) if what.startswith('"So"')] == [1, 5, 8, 9, 13]
    (tmp_path / "b.py").write_text(USED)
    assert prose.check(tmp_path / "b.py") == []


def test_a_sentence_of_a_docstring_does_not_run_into_the_next_entry(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    words = " ".join(["word"] * (prose.WORDS - 3))
    file.write_text(f'"""Fine.\n\nArgs:\n    one: {words}\n    two: {words}\n"""\n')
    assert prose.check(file) == []
    file.write_text(f'"""{words} {words}"""\n')
    assert len(prose.check(file)) == 1


def test_the_width_of_a_comment_includes_its_margin(tmp_path: Path) -> None:
    file = tmp_path / "a.rs"
    file.write_text(
        f"        /// {'y' * 108}\n        /// {'y' * 109}\n    // | {'y' * 200} |\n{'y' * 200}\n"
    )
    assert prose.check(file) == [(2, "the line has 121 characters, at most 120")]


def test_a_finding_has_its_line() -> None:
    assert prose.findings("Fine.\n\nThis is\ndearer.\n") == [
        (3, '"dearer": use `more expensive` or `slower`')
    ]
