"""Put the documentation of the compiled engine into its stub, where editors look for it.

    python scripts/stub_docstrings.py            writes python/keywright/_core.pyi
    python scripts/stub_docstrings.py --check    fails if that would change it

The Rust comments are the only source; the built extension has them as ``__doc__``. Objects that are not in
this build, such as those for experiments, keep the stub's docstrings.
"""

import argparse
import ast
import inspect
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

STUB = Path(__file__).parent.parent / "python" / "keywright" / "_core.pyi"

Documented = ast.FunctionDef | ast.ClassDef


def document(stub: str, module: object) -> str:
    """Return the text of a stub with the docstrings of a module's objects, and without those of missing
    objects.

    Args:
        stub: every function of it ends in ``...`` or in a docstring.
        module: has the objects of the stub as attributes.
    """
    lines = stub.splitlines()
    # Go backwards, so that line numbers stay valid.
    for node, found in reversed(list(_objects(ast.parse(stub), module))):
        text = None if _inherited(node) else found.__doc__
        own = inspect.cleandoc(text) if text else None
        body, indent = node.body[0], " " * (node.col_offset + 4)
        written = _docstring(own, indent) if own else []
        if _is_docstring(body):
            assert body.end_lineno is not None
            rest = [] if written or len(node.body) > 1 else [f"{indent}..."]
            lines[body.lineno - 1 : body.end_lineno] = [*written, *rest]
        elif isinstance(node, ast.ClassDef):
            lines[node.lineno : node.lineno] = written
        elif written:
            line = lines[body.lineno - 1]
            comment = line[body.end_col_offset :]
            lines[body.lineno - 1 : body.lineno] = [line[: body.col_offset].rstrip() + comment, *written]
    return "\n".join(lines) + "\n"


def _objects(tree: ast.Module, module: object) -> Iterator[tuple[Documented, object]]:
    """Functions, classes and members of classes that the module has, in order."""
    for node in tree.body:
        if isinstance(node, Documented) and hasattr(module, node.name):
            found = getattr(module, node.name)
            yield node, found
            for member in node.body if isinstance(node, ast.ClassDef) else ():
                if isinstance(member, ast.FunctionDef) and hasattr(found, member.name):
                    yield member, getattr(found, member.name)


def _inherited(node: Documented) -> bool:
    """Whether the documentation is Python's own, as for ``__eq__``."""
    return node.name.startswith("__")


def _is_docstring(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def _docstring(text: str, indent: str) -> list[str]:
    assert '"""' not in text
    first, *more = text.strip().splitlines()
    opening = indent + ('r"""' if "\\" in text else '"""') + first
    if not more:
        return [opening + '"""']
    return [opening, *(indent + line if line.strip() else "" for line in more), indent + '"""']


def formatted(stub: str) -> str:
    """Format a stub as ruff does."""
    command = [str(Path(sys.executable).with_name("ruff")), "format", "--stdin-filename", str(STUB), "-"]
    return subprocess.run(command, input=stub, capture_output=True, text=True, check=True).stdout


def main() -> int:
    """Write the stub, or check that it is current."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--check", action="store_true", help="change nothing; exit with 1 if the stub is not current"
    )
    check = parser.parse_args().check
    from keywright import _core

    before = STUB.read_text(encoding="utf-8")
    after = formatted(document(before, _core))
    if check:
        if before != after:
            print(f"{STUB} is not current: run python scripts/stub_docstrings.py", file=sys.stderr)
        return int(before != after)
    STUB.write_text(after, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
