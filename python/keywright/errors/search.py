"""The exceptions of `keywright.search`."""

from .engine import KeywrightError


class SearchError(KeywrightError):
    """Base of the errors of `keywright.search`."""


class VectorError(SearchError, ValueError):
    """A vector that an index or a query cannot take.

    Attributes:
        reason: "shape", "number", "norm" or "radius".
        row: place of the vector in the call, None for a query.
        value: the offending length, number or norm.
        bound: the required length, or the largest norm; None for other reasons.
    """

    reason: str
    row: int | None = None
    value: float | None = None
    bound: float | None = None


class IdError(SearchError, ValueError):
    """An id that is already in an index, occurs twice, is missing, or is not an integer.

    Attributes:
        id: the offending id; None if the ids have another shape or type.
    """

    id: int | None = None


class EmptyIndexError(SearchError, LookupError):
    """A query of an index without vectors."""


class ResultCountError(SearchError, ValueError):
    """More results than an index has vectors, or less than one.

    Attributes:
        k: number of results.
        vectors: of the index.
    """

    k: int
    vectors: int


class EstimatorError(SearchError, ValueError):
    """A model that is not one of neighbours or clusters, or has no encrypted form."""


class AnswerError(SearchError, ValueError):
    """Bytes that are not an answer to a query, or an answer of an index that has changed.

    Attributes:
        reason: "format", "query", "index" or "revision".
    """

    reason: str
