"""An index of `keywright.search` as a service has it.

Its document is its directory, whose SHA-256 is its name. Indices with one quantisation share the keys of
their clients; so do the shards of an index, and an index before and after a change.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from mmap import PAGESIZE
from pathlib import Path

from keywright._copies import Unpicklable
from keywright._core import EvaluationKeys, inspect
from keywright._reading.records import refusing
from keywright._units import format_bytes
from keywright.errors import FormatError, KeywrightError, OutOfMemoryError, SearchError
from keywright.errors.service import InvalidObjectError
from keywright.keys import set_head
from keywright.model.served import framing
from keywright.plan.memory.process import Parts
from keywright.search import EncryptedIndex, Index
from keywright.search.directory import DESCRIPTION, Places
from keywright.search.index import EncryptedQuery
from keywright.search.quantisation import ENCRYPTED_LEVEL
from keywright.search.shards import kind_of

from .interface import KeySet, MessageForm

HEADER_BYTES = 4096
"""Most bytes of a ciphertext besides its polynomials, and of a key before its first digit."""

EXPANDED_AT_ONCE = 128
"""Components of a query whose ciphertexts are in memory at a time, if vectors are in the clear."""

CLEAR_S, ENCRYPTED_S = 1e-8, 3e-7
"""Predicted seconds of an answer for each component of a vector, one thread."""


def is_index(folder: Path) -> bool:
    """Whether a folder has a search index."""
    return (folder / DESCRIPTION).is_file()


class ServedIndex(Unpicklable, elsewhere="make one of the folder in the other process"):
    """An index that a service answers for, from the folder of `Index.save` or `EncryptedIndex.save`.

    `Service`, `serve` and ``keywright serve`` take it beside models. The folder must not change while it is
    served: to change an index, save it to a new folder and serve that.

    Thread safety: any number of threads may use one at the same time.

    Args:
        folder: of the saved index.
        name: of the index, for people; by default the folder's.

    Raises:
        FormatError: a file is damaged.
        FileNotFoundError: a file is missing.
        SearchError: the index has no vectors.
    """

    steps = 1

    def __init__(self, folder: str | Path, name: str | None = None) -> None:
        self.folder = Path(folder)
        self.name = self.folder.name if name is None else name
        self._kind = kind_of(self.folder)
        with refusing(f"{folder}, a search index", FormatError):
            places, self.quantisation, _ = Places.load(self.folder, self._kind.FORMAT)
        places.require_vectors()
        self.document, specs = places.directory(self.quantisation).to_bytes(), self.quantisation.key_specs
        self.hash = hashlib.sha256(self.document).hexdigest()
        self._size = len(places.ids) * self.quantisation.dimension
        if not specs:
            raise SearchError(
                "vectors of one number need no keys, and a service takes keys; add a zero to each",
                code="shape",
            )
        parameters = self.parameters = self.quantisation.parameters
        self.encoded_parameters, head = parameters.to_bytes(), set_head(specs, parameters)
        size, resident = int(inspect(head)["bytes"]), sum(spec.bytes + PAGESIZE for spec in specs)
        self.keys = KeySet(head, size, resident, len(head) + HEADER_BYTES, [specs])
        self.message = MessageForm(1, 1, 8 * parameters.n * len(parameters.q) + HEADER_BYTES)

    @property
    def predicted_seconds(self) -> float:
        """Predicted seconds of an answer, one thread."""
        return self._size * (ENCRYPTED_S if self.quantisation.encrypted else CLEAR_S)

    @property
    def key_places(self) -> Sequence[tuple[int, int]]:
        """What an answer needs of a stored set: all of it."""
        return [(0, self.keys.size)]

    def folder_in(self, state: Path) -> Path:
        """Return its folder."""
        return self.folder

    def plan_service(self, budget: int, resident_bytes: int) -> "IndexPlan":
        """Plan the memory of a process that answers for the index, without keys.

        Args:
            budget: maximum bytes of the process.
            resident_bytes: bytes in use before the index is loaded.

        Raises:
            OutOfMemoryError: the index does not fit.
        """
        n, components = self.parameters.n, self.quantisation.dimension
        polynomial, blocks = 8 * n, -(-self._size // (components * n))
        if self.quantisation.encrypted:
            vectors = blocks * (components + 1) * 2 * (ENCRYPTED_LEVEL + 1) * polynomial
        else:
            # Integers of 2 bytes, and an addend of 8.
            vectors = blocks * n * (2 * components + 8)
            components = min(components, EXPANDED_AT_ONCE)
        memory = IndexMemory(resident_bytes, vectors, components * 2 * len(self.parameters.q) * polynomial)
        if memory.total > budget:
            raise OutOfMemoryError(
                f"the index {self.name} needs {memory.describe()}, and {format_bytes(budget)} are allowed; "
                "raise --memory, or serve its shards from several machines",
                needed=memory.total,
                budget=budget,
                parts=memory.parts(),
            )
        return IndexPlan(memory)

    def runner(self, budget: int | None, resident_bytes: int) -> "IndexRunner":
        """Load its vectors; arguments and errors as for `plan_service`, without a budget unplanned."""
        if budget is not None:
            self.plan_service(budget, resident_bytes)
        return IndexRunner(self._kind.load(self.folder))

    def example(self, address: str) -> str:
        """Return a Python program that asks a server at an address."""
        return (
            f'import keywright as kw\n\nwith kw.client.RemoteSearch("{address}") as remote:\n'
            "    print(remote.top(vector, k=10))"
        )


@dataclass(frozen=True)
class IndexMemory(Parts):
    """Bytes of a process that answers for an index.

    Attributes:
        process: before anything is made.
        vectors: of the index.
        ciphertexts: of an expanded query.
    """

    process: int
    vectors: int
    ciphertexts: int


@dataclass(frozen=True)
class IndexPlan:
    """The memory plan of such a process."""

    memory: IndexMemory

    def explain(self) -> str:
        """Describe how vectors are stored."""
        return "vectors in memory"


class IndexRunner:
    """An index in the memory of a worker."""

    def __init__(self, held: Index | EncryptedIndex) -> None:
        self._index = held

    @property
    def working_bytes(self) -> int:
        """Bytes of the vectors."""
        return self._index.nbytes

    def read(self, messages: Sequence[bytes]) -> EncryptedQuery:
        """Read the query of a message.

        Raises:
            BadRequestError: as for `framing.split`.
            InvalidObjectError: it is not an encrypted vector of the index's parameters.
        """
        (data,) = framing.split(messages[0], 1)
        try:
            return self._index.read(data)
        except KeywrightError as error:
            raise InvalidObjectError(f"a query of the index cannot be read: {error}") from error

    def evaluate(
        self, inputs: EncryptedQuery, keys: EvaluationKeys, on_step: Callable[[], object]
    ) -> list[bytes]:
        """Return the scores of a query; see `ServedRunner.evaluate`."""
        scores = self._index.scores(inputs, keys)
        on_step()
        return [scores]
