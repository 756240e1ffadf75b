"""Illegal arguments of every function in the stub: integers out of range, and pipes instead of files."""

from __future__ import annotations

import ast
import os
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import keywright as kw
import numpy as np
import pytest
from keywright import _core, search
from keywright.search.quantisation import ENCRYPTED_LEVEL
from tests.engine.bootstrapping.owner import small_parameters, small_plan
from tests.engine.randomness import drawing

HUGE = 1 << 200
SIGNED = {"steps", "stride", "rotations", "descriptor"}
"""Arguments that may be negative."""
ACKNOWLEDGEMENT = "Chem does not hide messages"


class Argument(NamedTuple):
    """An argument and the function that takes it."""

    owner: str
    function: str
    name: str
    node: ast.FunctionDef

    def __str__(self) -> str:
        return f"{self.owner}.{self.function}({self.name})".lstrip(".")


def parameters_of(node: ast.FunctionDef) -> list[ast.arg]:
    """Return the arguments in the order in which they are converted."""
    return [a for a in node.args.args + node.args.kwonlyargs if a.arg not in ("self", "cls")]


def has(name: str, annotation: ast.expr) -> bool:
    """Return whether an annotation has a type, other than in the signature of a function."""
    if isinstance(annotation, ast.Subscript) and ast.unparse(annotation.value) == "Callable":
        return False
    if isinstance(annotation, ast.Name):
        return annotation.id == name
    return any(has(name, child) for child in ast.iter_child_nodes(annotation) if isinstance(child, ast.expr))


def arguments(kind: str) -> list[Argument]:
    """Return the arguments of a type, or with values of that type in them."""
    listed = []
    tree = ast.parse(Path(_core.__file__).with_name("_core.pyi").read_text(encoding="utf-8"))
    owners: list[ast.Module | ast.ClassDef] = [tree]
    owners += [node for node in tree.body if isinstance(node, ast.ClassDef)]
    for owner in owners:
        name = owner.name if isinstance(owner, ast.ClassDef) else ""
        for node in owner.body:
            if isinstance(node, ast.FunctionDef):
                listed += [
                    Argument(name, node.name, a.arg, node)
                    for a in parameters_of(node)
                    if a.annotation and has(kind, a.annotation)
                ]
    return listed


@cache
def objects() -> dict[str, Any]:
    """Return an object of every class with integer arguments, or that such a function takes."""
    ckks, secret, key = drawing.ckks(), drawing.secret(), drawing.public_key(drawing.secret())
    generator = kw.KeyGenerator(secret, drawing.ENTROPY)
    bfv, bfv_parameters = drawing.bfv_secret(), drawing.bfv_secret().parameters
    assert isinstance(bfv_parameters, kw.bfv.Parameters)
    thin = drawing.client(drawing.ENTROPY)
    spec, plan = kw.KeySpec.rotation(ckks, 1), small_plan(small_parameters())
    group, dealers = drawing.threshold(), [drawing.party(None) for _ in range(2)]
    dealt = [dealer.deal()[0] for dealer in dealers]
    keys = [
        ckks,
        secret,
        key,
        generator,
        thin,
        spec,
        plan,
        group,
        bfv_parameters,
        kw.bfv.Encryptor(drawing.public_key(bfv), drawing.ENTROPY),
        kw.bfv.Decryptor(bfv),
        kw.bfv.Evaluator(bfv_parameters),
        _core.SearchIndex(search.Quantisation(2, thin=True).parameters, 2, 1),
        _core.EncryptedSearchIndex(search.Quantisation(1, encrypted=True).parameters, 1, ENCRYPTED_LEVEL),
        kw.bfv.Encryptor(drawing.public_key(bfv)).encrypt([0]),
        generator.relinearization_key(),
        kw.EvaluationKeys(ckks),
        kw.keys.MasterKeys.generate(secret, [1], [31, 31]),
        _core.DerivationTree(10, [5], [5]),
        _core.PrimeWidths(10, [31.0, 30.0], [31.0]),
        _core.ErrorModel(ckks, kw.EvaluationKeys(ckks)),
        kw.LinearTransform(ckks, np.eye(2)),
        kw.Encryptor(key),
        kw.Encryptor(key).encrypt([0]),
        kw.EncryptionPool(key, 1, threads=0),
        _core.ChemEncryptor(key, 4, acknowledge=ACKNOWLEDGEMENT),
        kw.Decryptor(secret),
        kw.Flooding(1, 1),
        kw.Evaluator(ckks),
        drawing.thin(),
        kw.thin.Encryptor(drawing.thin_key(), drawing.thin()),
        thin.key_stream([spec], thin.session()),
        drawing.sums(),
        drawing.sum_key(None),
        _core.ThresholdShare.combine(group, 1, dealt, [bytes(32), bytes([1] * 32)]),
    ]
    return {type(one).__name__: one for one in keys}


def sample(annotation: ast.expr, integer: int, path: Path) -> Any:
    """Return a value of an annotation, with this integer and this path wherever it has one."""
    match annotation:
        case ast.Name(id="int"):
            return integer
        case ast.BinOp(left=left, right=right):
            return sample(left if has("int", left) or not has("int", right) else right, integer, path)
        case ast.Subscript(value=ast.Name(id="Sequence"), slice=item):
            return [sample(item, integer, path)]
        case ast.Subscript(value=ast.Name(id="Mapping"), slice=ast.Tuple(elts=[key, value])):
            return {sample(key, integer, path): sample(value, integer, path)}
        case ast.Subscript(value=ast.Name(id="tuple"), slice=ast.Tuple(elts=items)):
            return tuple(sample(item, integer, path) for item in items)
        case ast.Subscript(value=ast.Name(id="NDArray")):
            return np.zeros(1, np.int64)
        case ast.Subscript(value=ast.Name(id="Callable")):
            return print
    name = ast.unparse(annotation).strip("'\"")
    plain: dict[str, Any] = {
        "float": 1.0, "bool": True, "str": "encoded", "ArrayLike": [1.0], "_Bytes": bytes(32),
        "_Path": path, "_KeyParameters": drawing.ckks(), "object": None, "None": None,
    }  # fmt: skip
    return plain[name] if name in plain else objects()[name]


def call(argument: Argument, integer: int = 1, path: Path = Path("none.kw")) -> None:
    """Call the function with this integer in the argument, with this path, and legal values otherwise."""
    # Left out where there is a default, which PyO3 takes as it is.
    taken, node = parameters_of(argument.node), argument.node
    first = len(node.args.args) - len(node.args.defaults)
    optional = {a.arg for a in node.args.args[first:]}
    optional |= {a.arg for a, value in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True) if value}
    given = {"session": bytes(16)}
    values = {
        a.arg: given[a.arg]
        if a.arg in given
        else sample(a.annotation, integer if a.arg == argument.name else 1, path)
        for a in taken
        if a.annotation and (a.arg == argument.name or a.arg not in optional)
    }
    if not argument.owner:
        function = getattr(_core, argument.function)
    elif argument.function == "__new__":
        function = getattr(_core, argument.owner)
    elif any(ast.unparse(d) == "staticmethod" for d in node.decorator_list):
        function = getattr(getattr(_core, argument.owner), argument.function)
    else:
        function = getattr(objects()[argument.owner], argument.function)
    # Some arguments have no name that a caller can use.
    positional = [values.pop(a.arg) for a in node.args.args if a.arg in values and a.arg not in optional]
    function(*positional, **values)


@pytest.mark.parametrize("argument", arguments("int"), ids=str)
def test_an_integer_out_of_range_is_refused_with_its_name_and_bounds(argument: Argument) -> None:
    for integer in [HUGE] if argument.name in SIGNED else [HUGE, -1]:
        with pytest.raises(
            kw.errors.ParameterError, match=rf"^{argument.name} is {integer}; use an"
        ) as caught:
            call(argument, integer)
        error = caught.value
        assert (error.what, error.value) == (argument.name, integer)
        assert ("not below" in str(error)) == (integer < 0)
        assert not error.minimum <= integer <= error.maximum  # type: ignore[operator]


def test_other_arguments_stay_errors_of_type() -> None:
    with pytest.raises(TypeError):
        kw.Flooding("1", 1)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        kw.KeySpec.rotation(drawing.ckks(), 1, special=[1.5])  # type: ignore[list-item]
    with pytest.raises(kw.errors.ParameterError, match=r"^special is -2; use an integer not below 0"):
        kw.KeySpec.rotation(drawing.ckks(), 1, special=np.array([1, -2]))  # type: ignore[arg-type]


WRITTEN = ("save", "save_evaluation_keys", "__new__")
"""Functions whose paths are written; the file of a pool is opened for both."""
READ = [argument for argument in arguments("_Path") if argument.function not in WRITTEN]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
@pytest.mark.parametrize("argument", READ, ids=str)
def test_a_pipe_or_a_folder_is_refused_before_it_is_opened(argument: Argument, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path, kind in ((pipe, "a pipe"), (tmp_path, "a folder"), (Path("/dev/null"), "a device")):
        with pytest.raises(kw.errors.FormatError, match=kind) as caught:
            call(argument, path=path)
        error = caught.value
        assert str(path) in str(error)
        assert (error.code, error.found, error.expected) == ("kind", kind, "a file")
