"""The modules of a Rust crate, and which of them name each other: read from its sources, without a compiler.

`use` declarations and paths that begin with `crate`, `self` or `super` are followed to the file that defines
what they name, through `pub use` of the modules between. Comments, strings, modules of tests and what a
module exports of others are left out. Macros are not expanded.
"""

import re
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

Name = tuple[str, ...]
"""A path of Rust, as its parts; of a module, from the root of the crate."""

_SKIPPED = re.compile(
    r'//[^\n]*|/\*.*?\*/|b?r(#*)".*?"\1|b?"(?:[^"\\]|\\.)*"|b?\'(?:[^\'\\]|\\[^u]|\\u\{\w+\})\'', re.DOTALL
)
_USE = re.compile(r"(\bpub\s*(?:\([^)]*\))?\s*)?\buse\s+([^;]+);")
_PATH = re.compile(r"(?<![\w:$])(?:crate|self|super)(?:\s*::\s*\w+)+")
_TESTS = re.compile(r"#\[cfg\((?:test|all\(test[^\]]*)\)\]\s*(?:#\[[^\]]*\]\s*)*mod\s+\w+\s*(?=[{;])")
_OF_FOLDERS = frozenset({"lib.rs", "mod.rs"})


def closing(text: str, start: int) -> int:
    """The place after the brace that closes the one at `start`."""
    depth = 0
    for place in range(start, len(text)):
        depth += {"{": 1, "}": -1}.get(text[place], 0)
        if not depth:
            return place + 1
    return len(text)


def code(text: str) -> str:
    """A source without comments, the contents of strings and modules of tests."""
    text = _SKIPPED.sub(lambda match: " " if match[0].startswith("/") else '""', text)
    while (tests := _TESTS.search(text)) is not None:
        end = closing(text, tests.end()) if text[tests.end()] == "{" else tests.end() + 1
        text = text[: tests.start()] + text[end:]
    return text


def leaves(tree: str, prefix: Name = ()) -> Iterator[tuple[Name, str]]:
    """The paths of a `use` declaration with its groups, each with the name that it gives."""
    head, brace, rest = tree.strip().partition("{")
    path, _, alias = (part.strip() for part in head.partition(" as "))
    parts = (*prefix, *(part.strip() for part in path.split("::") if part.strip()))
    if not brace:
        if len(parts) > 1 and parts[-1] == "self":
            parts = parts[:-1]
        yield parts, alias or parts[-1]
        return
    depth, start, group = 0, 0, rest.rpartition("}")[0] + ","
    for place, character in enumerate(group):
        depth += {"{": 1, "}": -1}.get(character, 0)
        if character == "," and not depth:
            if group[start:place].strip():
                yield from leaves(group[start:place], parts)
            start = place + 1


class Crate:
    """The modules of the library whose sources are in a folder."""

    def __init__(self, source: Path) -> None:
        self.source = source
        self.files: dict[Name, Path] = {}
        for path in sorted(source.rglob("*.rs")):
            folders = path.relative_to(source).parts[:-1]
            if not {"bin", "tests"} & {*folders, path.stem}:
                self.files[folders if path.name in _OF_FOLDERS else (*folders, path.stem)] = path

    @cached_property
    def _codes(self) -> dict[Name, str]:
        return {module: code(path.read_text(encoding="utf-8")) for module, path in self.files.items()}

    @cached_property
    def _names(self) -> dict[Name, dict[str, Name]]:
        """For each module, the names that `use` gives it, and their paths."""
        return {
            module: {name: path for _, tree in _USE.findall(text) for path, name in leaves(tree)}
            for module, text in self._codes.items()
        }

    def _home(self, module: Name, path: Name) -> Name | None:
        """The module that defines what a path names, read in a module; nothing for other crates."""
        if path[0] == "crate":
            module, path = (), path[1:]
        elif path[0] == "self":
            path = path[1:]
        elif (
            path[0] != "super" and (*module, path[0]) not in self.files and path[0] not in self._names[module]
        ):
            return None
        while path:
            name, *rest = path
            if name == "super":
                module = module[:-1]
            elif (*module, name) in self.files:
                module = (*module, name)
            elif name in self._names[module]:
                target = self._names[module][name]
                return None if target[0] == name else self._home(module, (*target, *rest))
            else:
                break
            path = tuple(rest)
        return module

    @cached_property
    def arrows(self) -> dict[Path, set[Path]]:
        """From each file to those that it names."""
        arrows: dict[Path, set[Path]] = {}
        for module, text in self._codes.items():
            paths = {path for public, tree in _USE.findall(text) if not public for path, _ in leaves(tree)}
            for inline in _PATH.findall(_USE.sub("", text)):
                paths.add(tuple(re.split(r"\s*::\s*", inline)))
            homes = {self._home(module, path) for path in paths}
            arrows[self.files[module]] = {self.files[home] for home in homes if home is not None} - {
                self.files[module]
            }
        return arrows
