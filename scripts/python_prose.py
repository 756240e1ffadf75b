"""The prose of Python sources: docstrings, comments, and the strings of errors and of help texts."""

import ast
import io
import re
import tokenize
from collections.abc import Iterable, Iterator

SECTION = re.compile(r"^(Args|Attributes|Raises|Returns|Yields):$")
NOT_PROSE = ("|", ">>>", "...", "```", "* ", "- ")
PRAGMA = re.compile(r"#!|# ?(type:|noqa|fmt:|pragma:)")


def paragraphs(source: str) -> Iterator[tuple[int, str]]:
    """Yield each paragraph of a source's prose as one line, with the number of its first line."""
    yield from _texts(ast.walk(ast.parse(source)))
    yield from _comments(source)


def public(source: str) -> Iterator[tuple[int, str]]:
    """Yield the paragraphs that users of a source see: not comments, nor docstrings of private names."""
    private = re.compile(r"_(?!_)")
    waiting: list[ast.AST] = [ast.parse(source)]
    while waiting:
        node = waiting.pop()
        yield from _texts([node])
        children = [*ast.iter_child_nodes(node)]
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and private.match(node.name):
            children = [one for one in children if one is not node.body[0] or not ast.get_docstring(node)]
        waiting += children


def _texts(nodes: Iterable[ast.AST]) -> Iterator[tuple[int, str]]:
    """Yield the docstrings, and the strings of errors and help texts, that these nodes are."""
    for node in nodes:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            if isinstance(node.value.value, str):
                yield from _docstring(node.lineno, node.col_offset, node.value.value)
        elif isinstance(node, ast.Raise) and node.exc is not None:
            yield from _strings(node.exc)
        elif isinstance(node, ast.keyword) and node.arg == "help":
            yield from _strings(node.value)


def _docstring(line: int, margin: int, text: str) -> Iterator[tuple[int, str]]:
    """Yield the paragraphs of a docstring, and the entries of its sections; code and tables are left out."""
    held: list[str] = []
    start, inside, code = line, False, False
    for number, full in enumerate([*text.splitlines(), ""], start=line):
        plain = full.strip()
        indent = len(full) - len(full.lstrip()) - margin if number > line else 0
        section = bool(SECTION.match(plain)) and indent == 0
        inside = section or (inside and (indent > 0 or not plain))
        code = plain.startswith("```") != code
        entry = inside and indent == 4
        beside = not plain or section or code or plain.startswith(NOT_PROSE) or (indent >= 4 and not inside)
        if held and (beside or entry):
            yield start, " ".join(held)
            held = []
        if not beside:
            start = start if held else number
            held.append(plain)


def _strings(node: ast.expr) -> Iterator[tuple[int, str]]:
    """Yield the texts of an expression; values in braces become one word."""
    if isinstance(node, ast.JoinedStr):
        parts = [part.value if isinstance(part, ast.Constant) else "value" for part in node.values]
        yield node.lineno, "".join(map(str, parts))
    elif isinstance(node, ast.Constant):
        if isinstance(node.value, str):
            yield node.lineno, node.value
    else:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                yield from _strings(child)
            elif isinstance(child, ast.keyword):
                yield from _strings(child.value)


def _comments(source: str) -> Iterator[tuple[int, str]]:
    """Yield each comment; lines of comments that follow each other are one."""
    held: list[str] = []
    start = last = 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT or PRAGMA.match(token.string):
            continue
        if held and token.start[0] != last + 1:
            yield start, " ".join(held)
            held = []
        start, last = start if held else token.start[0], token.start[0]
        held.append(token.string.lstrip("#").strip())
    if held:
        yield start, " ".join(held)
