"""The exceptions of `keywright.search`."""

from .engine import KeywrightError


class SearchError(KeywrightError, LookupError, ValueError):
    """Vectors, ids or models that an index or a query does not take.

    * ``shape``, ``number``, ``norm``, ``radius``: a vector of another length, with a number that is not
      finite, or too short or long.
    * ``id``: an id that is in the index already, occurs twice, is not there, or is not an integer.
    * ``empty``: the index has no vectors.
    * ``count``: more results than the index has vectors, or less than one.
    * ``estimator``: a model that is not one of neighbours or clusters, or has no encrypted form.

    What to do: pass vectors of the index's length and norm, ids that are there, or another model.

    Attributes:
        row: place of the vector in the call, None for a query.
        value: the offending length, number or norm.
        bound: the required length, or the largest norm; None for other reasons.
        id: the offending id; None if the ids have another shape or type.
        k: number of results.
        vectors: of the index.
    """

    code = "empty"
    row: int | None = None
    value: float | None = None
    bound: float | None = None
    id: int | None = None
    k: int = 0
    vectors: int = 0
