import textwrap
from pathlib import Path

import pytest
import run_snippets


def run(tmp_path: Path, capsys: pytest.CaptureFixture[str], markdown: str) -> tuple[int, str]:
    """Run one page and return the exit status and what was printed, the page's folder removed."""
    page = tmp_path / "page.md"
    page.write_text(textwrap.dedent(markdown), encoding="utf-8")
    status = run_snippets.main([str(page)])
    printed = capsys.readouterr()
    return status, (printed.out + printed.err).replace(f"{tmp_path}/", "")


def test_python_blocks_share_a_namespace_and_a_folder_with_the_console(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, printed = run(
        tmp_path,
        capsys,
        """\
        ```python
        from pathlib import Path
        count = 3
        ```
        ```python
        Path("out.txt").write_text("x" * count)
        ```
        ```console
        $ wc -c \\
            out.txt
        3 out.txt
        $ cat out.txt; echo; echo 12 ms
        xxx
        ... ms
        ```
        """,
    )
    assert status == 0, printed
    assert printed.startswith("page.md: 3 snippets, ")


@pytest.mark.parametrize("language", ["text", "sh", "rust", ""])
def test_other_languages_are_left_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], language: str
) -> None:
    status, printed = run(tmp_path, capsys, f"```{language}\nraise SystemExit(7)\n```\n")
    assert status == 0
    assert printed.startswith("page.md: 0 snippets, ")


def test_blocks_that_import_a_missing_optional_module_are_left_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_snippets, "OPTIONAL", {"json", "no_such_module"})
    blocks = [
        f"```python\nimport {name}\n\nraise SystemExit(7)\n```\n" for name in ("no_such_module", "json")
    ]
    status, printed = run(tmp_path, capsys, blocks[0] + "```python\nassert True\n```\n")
    assert status == 0
    assert printed.startswith("page.md:2: SKIPPED, no_such_module is not installed\n")
    assert "page.md: 1 snippets, " in printed
    status, printed = run(tmp_path, capsys, blocks[1])
    assert status == 1
    assert printed.startswith("page.md:4: SystemExit")


@pytest.mark.parametrize(
    ("markdown", "failure"),
    [
        (
            "text\n\n```python\nx = 1\nassert x == 2, 'not two'\n```\n",
            "page.md:5: AssertionError: not two\n    assert x",
        ),
        ("```python\nx = = 1\n```\n", "page.md:2: SyntaxError"),
        ("```python\nimport sys\nsys.exit(0)\n```\n", "page.md:3: SystemExit"),
        ("* item\n\n  ```python\n  1 / 0\n  ```\n", "page.md:4: ZeroDivisionError"),
        ("```console\n$ true\n$ exit 3\n```\n", "page.md:3: `exit 3` ended with status 3"),
        ("```console\n$ false | true\n```\n", "page.md:2: `false | true` ended with status 1"),
        ("```console\n$ echo 1\n2\n```\n", "page.md:2: `echo 1` printed\n1\nbut the page shows\n2"),
        ("```console\necho 1\n```\n", "page.md:2: a console block begins with '$ command'"),
        ("\n```python\nx = 1\n", "page.md:2: the fence ```python is never closed"),
    ],
)
def test_failures_name_page_and_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], markdown: str, failure: str
) -> None:
    status, printed = run(tmp_path, capsys, markdown)
    assert status == 1
    assert printed.startswith(failure), printed


@pytest.mark.parametrize(
    ("expected", "output", "matches"),
    [
        ("a\nb", "a  \nb\n", True),
        ("key: ... MB", "key: 12.5 MB", True),
        ("a\n...\nz", "a\n1\n2\nz", True),
        ("a...", "b", False),
        ("a", "a\nb", False),
        ("1.5", "1x5", False),
    ],
)
def test_output_matching(expected: str, output: str, matches: bool) -> None:
    assert run_snippets.output_matches(expected, output) is matches


def test_a_page_runs_in_a_process_of_its_own_and_its_commands_in_others(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "```python\nprint('begun', end=' ')\n```\n\n```console\n$ keywright --version\nkeywright ...\n```\n"
    )
    run_snippets.run_apart(page)
    page.write_text("```console\n$ keywright presets --nonsense\n```\n")
    with pytest.raises(
        AssertionError, match=r"page\.md:2: `keywright presets --nonsense` ended with status 2"
    ):
        run_snippets.run_apart(page)
