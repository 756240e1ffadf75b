"""The refusal to pickle objects with secrets or compiled parts: unpickling runs code, and a pickled secret is
in the clear."""

from dataclasses import fields
from typing import Any, ClassVar, NoReturn, Self


class Stated:
    """Base of data classes that are pickled and copied by their fields: what is cached is computed again."""

    __slots__ = ()

    def __getstate__(self) -> dict[str, Any]:
        return {each.name: getattr(self, each.name) for each in fields(self)}  # type: ignore[arg-type]


class Unpicklable:
    """Base of classes whose objects are neither pickled, as joblib and process pools do, nor copied.

    A class names the way out with ``elsewhere``: how another process gets such an object.
    """

    __slots__ = ()
    _verbs: ClassVar[str] = "pickled or copied"
    _elsewhere: ClassVar[str]

    def __init_subclass__(cls, *, elsewhere: str | None = None) -> None:
        super().__init_subclass__()
        if elsewhere is not None:
            cls._elsewhere = elsewhere

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            f"{type(self).__name__} objects are not {self._verbs}, as joblib and process pools do; "
            f"{self._elsewhere}"
        )

    def _snapshot(self) -> Self:
        """Return an object with the same attributes, which its class may change."""
        other = object.__new__(type(self))
        vars(other).update(vars(self))
        return other


class Unchanging(Unpicklable):
    """Base of classes whose objects never change: a copy is the object itself."""

    __slots__ = ()
    _verbs = "pickled"

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self
