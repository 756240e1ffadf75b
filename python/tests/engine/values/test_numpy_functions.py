"""numpy's functions over objects that hold encrypted values: none returns."""

from __future__ import annotations

import inspect
import re
from typing import Any

import keywright as kw
import numpy as np
import pytest
from keywright import _core, bfv, search, values
from keywright.values.refusals import NoArray

RIGHT = {"isscalar": False, "iterable": False}
"""What is true of an object of any class."""

NOT_OF_ARRAYS = {
    *(
        "base_repr",
        "bmat",
        "busdaycalendar",
        "datetime64",
        "dtype",
        "finfo",
        "from_dlpack",
        "fromfile",
        "iinfo",
    ),
    *("isfortran", "info", "loadtxt", "memmap", "nditer", "nested_iters", "printoptions", "recarray", "save"),
    *("savetxt", "savez", "savez_compressed", "seterr", "show_config", "show_runtime", "str_", "test"),
    *("timedelta64", "typename"),
}
"""Functions of types, files, options or names; `isfortran` reads an attribute that only arrays have."""


def holders() -> dict[str, Any]:
    parameters = kw.Parameters.from_bits(10, [52, 42], [60], 42, insecure=True)
    secret = kw.SecretKey.generate(parameters)
    encryptor = kw.Encryptor(kw.KeyGenerator(secret).public_key())
    ciphertext = encryptor.encrypt(np.arange(8) / 8, slots=8)
    integers = bfv.Parameters.from_bits(11, [50, 50], [60], 65537, insecure=True)
    owner = kw.SecretKey.generate(integers)
    whole = bfv.Encryptor(kw.KeyGenerator(owner).public_key()).encrypt(np.arange(8))
    x = kw.Evaluator(parameters)(ciphertext)
    return {
        "Encrypted": x,
        "Ciphertext": ciphertext,
        "SeededCiphertext": kw.Decryptor(secret).encrypt(np.arange(8) / 8, slots=8),
        "EncryptedIntegers": bfv.Evaluator(integers)(whole),
        "BfvCiphertext": whole,
        "BfvSeededCiphertext": bfv.Decryptor(owner).encrypt(np.arange(8)),
        "Group": values.Group(np.ones(8)),
    }


HOLDERS = holders()
FUNCTIONS = [name for name in np.__all__ if callable(getattr(np, name)) and name not in NOT_OF_ARRAYS]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("holder", HOLDERS)
def test_no_function_of_numpy_takes_encrypted_values_for_an_object(holder: str) -> None:
    x = HOLDERS[holder]
    for name in FUNCTIONS:
        for arguments in ((x,), (x, x), (x, 1), (x, x, x)):
            if name in RIGHT and len(arguments) == 1:
                assert getattr(np, name)(x) is RIGHT[name]
                continue
            with pytest.raises(TypeError):
                pytest.fail(f"np.{name} gives {getattr(np, name)(*arguments)!r}")


@pytest.mark.parametrize("holder", HOLDERS)
@pytest.mark.parametrize("name", ["dot", "inner", "outer", "vdot", "kron", "convolve", "polyval", "append"])
def test_no_function_of_two_arrays_takes_encrypted_values_as_the_second(holder: str, name: str) -> None:
    with pytest.raises(TypeError, match=f"numpy.{name} does not compute on encrypted values"):
        getattr(np, name)(np.ones(8), HOLDERS[holder])


@pytest.mark.parametrize("name", ["sum", "mean", "average", "argmax", "roll", "cumsum", "unique", "size"])
def test_the_refusal_names_the_way_out(name: str) -> None:
    x = HOLDERS["Encrypted"]
    arguments = (x, 1) if name == "roll" else (x,)
    with pytest.raises(
        TypeError, match=re.escape("use their operators and methods, such as x.sum()")
    ) as error:
        getattr(np, name)(*arguments)
    for method in re.findall(r"x\.(\w+)\(", str(error.value)):
        assert callable(getattr(x, method))
    with pytest.raises(TypeError, match="arrays do not hold encrypted values"):
        np.asarray([x, x])


def test_every_class_that_holds_encrypted_values_refuses_them() -> None:
    for module in (kw, _core, bfv, values, search):
        for name, kind in vars(module).items():
            if not inspect.isclass(kind) or not re.search("Ciphertext|Encrypted|Answer$|^Query$", name):
                continue
            assert vars(NoArray)["__array_function__"] is inspect.getattr_static(
                kind, "__array_function__"
            ), name
