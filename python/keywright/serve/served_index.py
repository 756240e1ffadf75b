"""An index of `keywright.search` as a service has it: like a model, with keys, requests and answers.

Its manifest is its directory, whose SHA-256 is its name. Indices with one quantisation share the keys of
their clients; so do the shards of an index, and an index before and after a change.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from mmap import PAGESIZE
from pathlib import Path

from keywright._copies import Unpicklable
from keywright._core import BfvParameters, BfvSeededCiphertext, EvaluationKeys, KeySpec, Parameters, inspect
from keywright._reading.records import refusing
from keywright._units import format_bytes
from keywright.errors import FormatError, KeywrightError, OutOfMemoryError
from keywright.errors.service import InvalidObjectError
from keywright.keys import set_head
from keywright.model.exchange.requests import Answer
from keywright.model.model import Model
from keywright.model.served import framing
from keywright.plan.memory.process import Parts
from keywright.search import EncryptedIndex, Index, encrypted, index
from keywright.search.directory import Places
from keywright.search.messages import TAG_BYTES, query_to_bytes, read_answer
from keywright.search.quantisation import ENCRYPTED_LEVEL

DESCRIPTION = "index.json"
HEADER_BYTES = 4096
"""Most bytes of a ciphertext besides its polynomials, and of a key before its first digit."""

EXPANDED_AT_ONCE = 128
"""Components of a query whose ciphertexts are in memory at a time, if vectors are in the clear."""

CLEAR_S, ENCRYPTED_S = 1e-8, 3e-7
"""Predicted seconds of an answer for each component of a vector, one thread."""


def is_index(folder: Path) -> bool:
    """Whether a folder has a search index."""
    return (folder / DESCRIPTION).is_file()


def key_parameters(encoded: bytes) -> Parameters | BfvParameters:
    """Read the parameters of keys: of a model or of an index."""
    of_index = inspect(encoded)["kind"] == "BFV parameters"
    return BfvParameters.from_bytes(encoded) if of_index else Parameters.from_bytes(encoded)


@dataclass(frozen=True)
class Objects:
    """What an index takes or returns for a query: one object."""

    ciphertexts: int = 1
    batch: int = 1


@dataclass(frozen=True)
class End:
    """One end of an index: queries or answers."""

    places: Objects = Objects()


@dataclass(frozen=True)
class Keys:
    """The key set of an index: its head, and its bytes."""

    head: bytes
    size: int


@dataclass(frozen=True)
class Format:
    """The parameters of an index, as bytes."""

    parameters: bytes


@dataclass(frozen=True)
class IndexManifest:
    """The facts about an index that its clients know.

    Attributes:
        encoded: the directory.
        hash: its SHA-256, in hexadecimal.
        keys: the keys of a client.
        format: the parameters.
        input, output: the objects of a query.
    """

    encoded: bytes
    hash: str
    keys: Keys
    format: Format
    input: End = End()
    output: End = End()


class Queries:
    """Reads the queries of clients, and writes answers."""

    def __init__(self, parameters: BfvParameters) -> None:
        self._parameters = parameters

    @property
    def most_bytes(self) -> int:
        """Maximum bytes of a query, with its length."""
        return 8 * self._parameters.n * len(self._parameters.q) + HEADER_BYTES

    def read(self, data: bytes) -> bytes:
        """Check a query.

        Raises:
            InvalidObjectError: it is not an encrypted vector of the index's parameters.
        """
        try:
            BfvSeededCiphertext.from_bytes(data, self._parameters)
        except KeywrightError as error:
            raise InvalidObjectError(f"a query of the index cannot be read: {error}") from error
        return data

    def read_all(self, messages: Sequence[bytes]) -> list[bytes]:
        """Read the query of a message; errors as for `framing.split` and `read`."""
        return [self.read(framing.split(messages[0], 1)[0])]

    def answer(
        self,
        runner: "IndexRunner",
        keys: EvaluationKeys,
        inputs: Sequence[bytes],
        *,
        on_step: Callable[[], object],
    ) -> Answer:
        """Answer a query; errors as for `Index.answer`. The scores are whole numbers, without an error."""
        scores = runner.run(keys, *inputs)
        on_step()
        return Answer([scores], 0.0)


class KeyUse:
    """The keys of an answer, all of which are used at once."""

    def __init__(self, specs: Sequence[KeySpec]) -> None:
        self.key_steps = [list(specs)]

    def follow(self, keys: EvaluationKeys) -> EvaluationKeys:
        """Return the keys."""
        return keys


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

    joins, steps = False, 1

    def __init__(self, folder: str | Path, name: str | None = None) -> None:
        self.folder = Path(folder)
        self.name = self.folder.name if name is None else name
        self._kind: type[Index | EncryptedIndex] = Index
        form = index.FORMAT
        if not (self.folder / "vectors.npy").exists():
            self._kind, form = EncryptedIndex, encrypted.FORMAT
        with refusing(f"{folder}, a search index", FormatError):
            places, self.quantisation = Places.load(self.folder, form)
        places.require_vectors()
        directory, specs = places.directory(self.quantisation).to_bytes(), self.quantisation.key_specs
        self._size = len(places.ids) * self.quantisation.dimension
        self.parameters = self.quantisation.parameters
        head = set_head(specs, self.parameters)
        self.manifest = IndexManifest(
            directory,
            hashlib.sha256(directory).hexdigest(),
            Keys(head, int(inspect(head)["bytes"])),
            Format(self.parameters.to_bytes()),
        )
        self.requests, self.execution = Queries(self.parameters), KeyUse(specs)

    @property
    def predicted_seconds(self) -> float:
        """Predicted seconds of an answer, one thread."""
        return self._size * (ENCRYPTED_S if self.quantisation.encrypted else CLEAR_S)

    @property
    def resident_key_bytes(self) -> int:
        """Bytes of a client's keys in memory, each key on its own pages."""
        return sum(spec.bytes + PAGESIZE for spec in self.quantisation.key_specs)

    @property
    def key_head_bytes(self) -> int:
        """Bytes of a stored set up to the contents of its first key, or a few more."""
        return len(self.manifest.keys.head) + HEADER_BYTES

    @property
    def key_places(self) -> list[tuple[int, int]]:
        """Begin and end of what an answer needs of a stored set: all of it."""
        return [(0, self.manifest.keys.size)]

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

    def runner(self, planned: object = None) -> "IndexRunner":
        """Return the index in memory."""
        return IndexRunner(self._kind.load(self.folder))


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

    def run(self, keys: EvaluationKeys, query: bytes) -> bytes:
        """Return the encrypted scores of a query.

        Raises:
            KeywrightError: as for `Index.answer`.
        """
        (part,) = read_answer(self._index.answer(query_to_bytes(bytes(TAG_BYTES), query), keys))
        return part.scores


Served = Model | ServedIndex
"""What a service answers for."""


def load_served(folder: Path) -> Served:
    """Load what a folder has: an index, or a model.

    Raises:
        FormatError, SearchError: as for `ServedIndex`.
        FolderError: as for `Model.load`.
    """
    return ServedIndex(folder) if is_index(folder) else Model.load(folder)
