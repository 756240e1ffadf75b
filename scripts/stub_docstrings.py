"""Puts the documentation of the compiled engine into a copy of its stub, for editors and for the site.

    python scripts/stub_docstrings.py STUB    writes a documented stub to this file

The Rust comments are the only source; the built extension has them as ``__doc__``. The stub of this tree,
python/keywright/_core.pyi, has types alone: wheels (`release.wheels`) and the site (`build_site.py`) get the
documented one.
"""

import argparse
import ast
import inspect
import sys
from collections.abc import Iterator
from pathlib import Path

STUB = Path(__file__).parent.parent / "python" / "keywright" / "_core.pyi"

Documented = ast.FunctionDef | ast.ClassDef


def document(stub: str, module: object) -> str:
    """Return the text of a stub with the docstrings of a module's objects.

    Args:
        stub: has no docstrings; every function of it ends in ``...``.
        module: has the objects of the stub as attributes. Objects that it lacks, such as those for
            experiments, stay without a docstring.
    """
    lines = stub.splitlines()
    # Go backwards, so that line numbers stay valid.
    for node, documented in reversed(list(_objects(ast.parse(stub), module))):
        if node.name.startswith("__") or not documented.__doc__:  # Python's own, as for ``__eq__``
            continue
        written = _docstring(inspect.cleandoc(documented.__doc__), " " * (node.col_offset + 4))
        body = node.body[0]
        if isinstance(node, ast.ClassDef):
            lines[node.lineno : node.lineno] = written
        else:
            line = lines[body.lineno - 1]
            comment = line[body.end_col_offset :]
            lines[body.lineno - 1 : body.lineno] = [line[: body.col_offset].rstrip() + comment, *written]
    return "\n".join(lines) + "\n"


def documented_stub() -> str:
    """Return the stub of this tree with the documentation of the built extension.

    Raises:
        SystemExit: the extension was not built.
    """
    try:
        from keywright import _core
    except ImportError as error:
        raise SystemExit(f"the engine is not built ({error}): run make build") from error
    return document(STUB.read_text(encoding="utf-8"), _core)


def _objects(tree: ast.Module, module: object) -> Iterator[tuple[Documented, object]]:
    """Functions, classes and members of classes that the module has, in order."""
    for node in tree.body:
        if isinstance(node, Documented) and hasattr(module, node.name):
            owner = getattr(module, node.name)
            yield node, owner
            for member in node.body if isinstance(node, ast.ClassDef) else ():
                if isinstance(member, ast.FunctionDef) and hasattr(owner, member.name):
                    yield member, getattr(owner, member.name)


def _docstring(text: str, indent: str) -> list[str]:
    assert '"""' not in text
    first, *more = text.strip().splitlines()
    opening = indent + ('r"""' if "\\" in text else '"""') + first
    if not more:
        return [opening + '"""']
    return [opening, *(indent + line if line.strip() else "" for line in more), indent + '"""']


def main() -> int:
    """Write a documented stub."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("stub", type=Path, help="file to write")
    parser.parse_args().stub.write_text(documented_stub(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
