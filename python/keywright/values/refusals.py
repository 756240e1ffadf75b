"""What nobody computes on encrypted values without their secret key: comparisons, and numpy's functions."""

from typing import Any, ClassVar, NoReturn

from keywright._core import (
    BfvCiphertext,
    BfvSeededCiphertext,
    Ciphertext,
    EncryptedSearchIndex,
    EncryptedSum,
    EncryptedUpdate,
    SearchAnswer,
    SeededCiphertext,
)


class Incomparable:
    """Values that nobody but the owner of the secret key can compare or take as a truth value."""

    __slots__ = ()

    def _refuse(self, other: object = None) -> NoReturn:
        raise TypeError(
            "encrypted values cannot be compared or tested here: the result is encrypted, too; decrypt them "
            "first, or, for real values, use x.compare(y) or x.sign(), whose results are encrypted"
        )

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _refuse
    __bool__ = _refuse
    __hash__ = object.__hash__


class NoArray:
    """Base of classes that hold encrypted values. For numpy's functions they would be one object without
    numbers, and its mean the object itself.

    A class names with ``_computed`` what computes on its values.
    """

    __array_ufunc__ = None  # let numpy arrays on the left defer to this class
    __slots__ = ()
    _computed: ClassVar[str] = "decrypt them first"

    def __array__(self, dtype: object = None, copy: object = None) -> None:
        raise TypeError(_refusal("numpy arrays do not hold", self))

    def _uncomputed(self, *_operands: object) -> NoReturn:
        raise TypeError(_refusal("this operation of Python does not compute on", self))

    __abs__ = __round__ = __floor__ = __ceil__ = __trunc__ = _uncomputed
    __floordiv__ = __mod__ = __divmod__ = __rfloordiv__ = __rmod__ = __rdivmod__ = __rpow__ = _uncomputed

    def __array_function__(self, function: Any, *_arguments: object) -> None:
        name = getattr(function, "__name__", "a function")
        raise TypeError(_refusal(f"numpy.{name} does not compute on", self))


_BOUND = (
    "bind the ciphertext, x = evaluator(ciphertext), and use the operators and methods of x, or decrypt it"
)
_OF_ENGINE: dict[type, str] = {
    Ciphertext: _BOUND,
    BfvCiphertext: _BOUND,
    SeededCiphertext: "expand() the ciphertext first; then " + _BOUND,
    BfvSeededCiphertext: "expand() the ciphertext first; then " + _BOUND,
    EncryptedUpdate: "add it to an EncryptedSum",
    EncryptedSum: "the parties decrypt it together",
    SearchAnswer: "the client decrypts it, with Query.top",
    EncryptedSearchIndex: "search it with encrypted queries",
}


def _refusal(what: str, value: object) -> str:
    way = value._computed if isinstance(value, NoArray) else _OF_ENGINE[type(value)]
    return f"{what} encrypted values ({type(value).__name__}); {way}"


for _class in _OF_ENGINE:
    for _name in ("__array__", "__array_function__"):
        setattr(_class, _name, vars(NoArray)[_name])
