"""Every public class says which threads may use it, and classes that any may use are used by several.

The sentence is part of the docstring: `ANY` or `ONE`, with an exception at most. Classes whose objects cannot
change need none: frozen dataclasses, named tuples, errors. Protocols leave it to their classes.
"""

import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import is_dataclass
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory

import keywright as kw
import numpy as np
import pytest
from keywright import _core, bfv, federated, keys, plan, search, thin
from keywright.errors import PackageMissingError
from keywright.serve import ServedIndex, tenants
from keywright.serve.tenants.quotas import Quota
from keywright.values import Group
from tests.bootstraps import DEGREE_62

ROOT = Path(__file__).parents[3]
ENTROPY = bytes(range(32))
ANY = "Thread safety: any number of threads may use one at the same time"
ONE = "Thread safety: one thread at a time"
ENTRY = re.compile(r"^::: (keywright[\w.]*)$", re.MULTILINE)
COMPILED = re.compile(
    r'(?P<doc>(?:^///.*\n)+)#\[pyclass\(name = "(?P<name>\w+)"(?P<options>[^\]]*)\]', re.MULTILINE
)
UNLISTED = {
    "ChemDistinguisher",
    "ChemEncryptor",
    "DerivationTree",
    "EncryptedSearchIndex",
    "SearchAnswer",
    "SearchIndex",
}
"""Compiled classes that no page shows."""

THREADS, TIMES = 4, 8

JOINING = "serve/evaluation/test_joining.py::test_requests_that_wait_are_one_evaluation"
ELSEWHERE = {
    "keywright.client.RemoteModel": JOINING,
    "keywright.client.RemoteSearch": "serve/models/test_search.py::test_threads_query_vectors_of_their_owner",
    "keywright.federated.ThresholdMod": (
        "federated/threshold/test_client_answers.py::test_two_sums_at_once_get_one_answer"
    ),
    "keywright.model.Requests": JOINING,
    "keywright.search.IndexProcess": "search/test_shards.py::test_a_shard_in_a_process_answers_the_same",
    "keywright.serve.Service": JOINING,
    "keywright.serve.Workers": JOINING,
    "keywright.serve.tenants.Issuer": (
        "serve/tenants/test_oidc.py::test_a_slow_issuer_does_not_delay_tokens_with_cached_keys"
    ),
}
"""Classes that another test uses from several threads."""


def resolved(name: str) -> object:
    """What a page of the Python API shows; None if it needs a package that is not installed."""
    parts = name.split(".")
    for length in range(len(parts) - 1, 0, -1):
        try:
            member: object = import_module(".".join(parts[:length]))
        except ImportError:
            continue
        try:
            for part in parts[length:]:
                member = getattr(member, part)
        except PackageMissingError:
            return None
        return member
    raise AssertionError(name)


def documented() -> dict[str, type]:
    """The classes of the Python API's pages, without errors, by their names there."""
    pages = (ROOT / "docs" / "reference" / "python").glob("*.md")
    names = [name for page in sorted(pages) for name in ENTRY.findall(page.read_text(encoding="utf-8"))]
    shown = {name: resolved(name) for name in names}
    return {name: c for name, c in shown.items() if isinstance(c, type) and not issubclass(c, BaseException)}


def compiled() -> dict[str, tuple[str, bool]]:
    """The text and the immutability of each compiled class, from its source."""
    classes = {}
    for source in sorted((ROOT / "crates" / "python" / "src").rglob("*.rs")):
        for match in COMPILED.finditer(source.read_text(encoding="utf-8")):
            text = " ".join(line.removeprefix("///").strip() for line in match["doc"].splitlines())
            classes[match["name"]] = text, "frozen" in match["options"]
    return classes


def sentence(cls: type) -> str:
    """The docstring of a class in one line."""
    if getattr(_core, cls.__name__, None) is cls:
        return compiled()[cls.__name__][0]
    return " ".join((cls.__doc__ or "").split())


def unchangeable(cls: type) -> bool:
    """Whether its objects cannot change, or it has none."""
    frozen = is_dataclass(cls) and cls.__dataclass_params__.frozen  # type: ignore[attr-defined]
    return frozen or issubclass(cls, tuple) or getattr(cls, "_is_protocol", False)


Exercise = Callable[[], tuple[list[object], Callable[[], object]]]
"""Makes objects, and returns them with the work of a thread, which has the same result in each."""


def arithmetic() -> tuple[list[object], Callable[[], object]]:
    """Keys, ciphertexts, the evaluator, matrices, the model of errors."""
    parameters = kw.Parameters.from_bits(11, [55, 45, 45, 45], [50, 50], 45, insecure=True)
    secret = kw.SecretKey.generate(parameters, ENTROPY)
    generator = kw.KeyGenerator(secret)
    public, spec = generator.public_key(), kw.KeySpec.rotation(parameters, 1)
    held = generator.evaluation_keys(rotations=[1, 2])
    encryptor, decryptor = kw.Encryptor(public), kw.Decryptor(secret)
    evaluator = kw.Evaluator(parameters, held)
    values = np.linspace(-1, 1, 4)
    ciphertext, seeded = encryptor.encrypt(values, slots=4), decryptor.encrypt(values, slots=4)
    transform = kw.LinearTransform(parameters, {0: np.ones(4), 1: np.ones(4)}, slots=4)
    encrypted, key = evaluator(ciphertext), generator.switching_key(spec)
    errors, flooding = keys.ErrorModel(parameters, held), kw.Flooding(10, 10_000)
    widths = _core.PrimeWidths(11, [55.0, 45.0, 45.0, 45.0], [50.0, 50.0])
    group = Group([1, 0, 1, 1])
    pool = kw.EncryptionPool(public, 4, threads=0)

    def work() -> object:
        fresh = encryptor.encrypt(values, slots=4)
        assert np.abs(decryptor.decrypt(fresh) - values).max() < 1e-6
        assert np.abs(decryptor.decrypt(pool.encrypt(values, slots=4)) - values).max() < 1e-6
        assert np.abs(decryptor.decrypt(fresh, flooding) - values).max() < 1
        assert len(generator.switching_key(spec).to_bytes()) == len(key.to_bytes())
        return (
            (encrypted * encrypted + (encrypted << 1)).ciphertext.to_bytes(),
            group.variance(encrypted).ciphertext.to_bytes(),
            evaluator.linear_transform(ciphertext, transform).to_bytes(),
            seeded.expand().to_bytes(),
            kw.Parameters.from_bytes(parameters.to_bytes(), insecure=True) == parameters,
            (secret.to_bytes(), public.to_bytes(), held.to_bytes(), spec.bytes),
            errors.rotation(1, 4, 2),
            widths.digits(2, 1, [4]),
        )

    objects = [
        group,
        parameters,
        public,
        spec,
        ciphertext,
        seeded,
        transform,
        encrypted,
        key,
        errors,
        flooding,
        pool,
    ]
    parts = [secret, generator, held, encryptor, decryptor, evaluator]
    return [*objects, *parts, widths], work


def masters() -> tuple[list[object], Callable[[], object]]:
    """Master keys, and the keys that are derived from them."""
    parameters = kw.Parameters.from_bits(11, [55, 45, 45], [50, 50, 50], 45, insecure=True)
    secret = kw.SecretKey.generate(parameters, ENTROPY)
    master_keys = keys.MasterKeys.generate(secret, [1, 2], [55], level=0, entropy=ENTROPY)
    specs = [kw.KeySpec.rotation(parameters, 3, level=0)]
    return [master_keys], lambda: (master_keys.to_bytes(), master_keys.derivation(specs).depth)


def bootstrap() -> tuple[list[object], Callable[[], object]]:
    """A plan of a bootstrap, and its matrices."""
    widths = [50, 40, 40, 45, 45, 45] + 7 * [50] + [59, 60, 50] + 2 * [50]
    parameters = kw.Parameters.from_bits(11, widths, [50, 50, 50], 45, insecure=True)
    plan = kw.BootstrapperPlan(
        parameters,
        **DEGREE_62,
    )
    secret = kw.SecretKey.generate(parameters, ENTROPY)
    generator = kw.KeyGenerator(secret, ENTROPY)
    held = generator.evaluation_keys(specs=plan.required_keys, relinearization=False)
    values = np.linspace(-1, 1, plan.slots)
    exhausted = kw.Encryptor(generator.public_key(), ENTROPY).encrypt(values, level=2, magnitude=1)
    bootstrapper, evaluator = kw.Bootstrapper(plan), kw.Evaluator(parameters, held)
    return [plan, bootstrapper], lambda: (
        plan.key_bytes["galois"] if "galois" in plan.key_bytes else sum(plan.key_bytes.values()),
        bootstrapper.bootstrap(evaluator, exhausted).to_bytes(),
    )


def integers() -> tuple[list[object], Callable[[], object]]:
    """BFV."""
    parameters = bfv.Parameters.preset("N12_QP106_T17")
    secret = kw.SecretKey.generate(parameters, ENTROPY)
    generator = kw.KeyGenerator(secret, ENTROPY)
    encryptor, decryptor = bfv.Encryptor(generator.public_key()), bfv.Decryptor(secret)
    evaluator = bfv.Evaluator(parameters, generator.evaluation_keys())
    numbers = np.arange(8)
    ciphertext, seeded = encryptor.encrypt(numbers), decryptor.encrypt(numbers)
    encrypted = evaluator(ciphertext)

    def work() -> object:
        assert decryptor.decrypt(encryptor.encrypt(numbers))[:8].tolist() == numbers.tolist()
        square = (encrypted * encrypted).ciphertext
        return square.to_bytes(), seeded.expand().to_bytes(), parameters.to_bytes()

    return [parameters, encryptor, decryptor, evaluator, ciphertext, seeded, encrypted], work


def thin_client() -> tuple[list[object], Callable[[], object]]:
    """A client of one prime."""
    parameters = kw.Parameters.from_bits(11, [50, 40, 40], [50], 40, insecure=True)
    declared = thin.Parameters(parameters, scale=1 << 30, fraction_bits=8, slots=16)
    client = thin.Client(declared, ENTROPY)
    encryptor = thin.Encryptor(client.public_key(), declared)
    numbers = np.arange(16)

    def work() -> object:
        sizes = {len(client.encrypt(numbers)), len(client.encrypt(numbers))}
        return sizes, len(encryptor.encrypt(numbers)), client.secret_bytes(), declared.to_bytes()

    return [declared, client, encryptor], work


def sums() -> tuple[list[object], Callable[[], object]]:
    """Sums of a federation, with one key and with shares."""
    parameters = federated.SumParameters(3, 100)
    key = federated.SumKey.generate(parameters, ENTROPY)
    values = np.arange(5, dtype=np.int64)
    updates = [
        key.encrypt(values, session=bytes(16), round=1, client=client, weight=1) for client in range(2)
    ]
    total = federated.EncryptedSum.of(updates, parameters)
    group = federated.ThresholdParameters(3, 2, max_inputs=3, magnitude=1000, max_values=10)
    party = federated.ThresholdParty.generate(group, bytes(32), ENTROPY)
    others = [party, *(federated.ThresholdParty.generate(group, bytes(32)) for _ in range(2))]
    joint = federated.ThresholdKey.combine(group, bytes(32), [one.public_half() for one in others])
    dealt = [one.deal() for one in others]
    pairs = [bytes([min(0, other), max(0, other)]) * 16 for other in range(3)]
    share = federated.ThresholdShare.combine(group, 1, [one[0] for one in dealt], pairs)

    def work() -> object:
        again = federated.EncryptedSum.of(updates, parameters)
        assert len(party.deal()) == 3
        halves = party.public_half(), joint.to_bytes(), share.to_bytes()
        return key.decrypt(total).tolist(), again.to_bytes(), updates[0].to_bytes(), halves, hash(parameters)

    return [parameters, key, updates[0], total, group, party, joint, share], work


def similarity() -> tuple[list[object], Callable[[], object]]:
    """Search in an index and in shards."""
    stored = np.random.default_rng(1).normal(size=(40, 4))
    index = search.Index.of(stored)
    shards = search.Shards([index])
    with TemporaryDirectory() as folder:
        index.save(Path(folder, "stored"))
        served = ServedIndex(Path(folder, "stored"))
    client = search.Client(shards.directory())
    query_keys, query = client.keys(), client.query(stored[3])
    encrypted = search.EncryptedIndex(search.Quantisation(4, encrypted=True))
    owner = search.Client(encrypted.directory())
    for message in owner.encrypt([0, 1], stored[:2]):
        encrypted.add(message)
    owner.update(encrypted.directory())
    own_keys, own_query = owner.keys(), owner.query(stored[1])

    def work() -> object:
        assert len(client.query(stored[2]).data) == len(query.data)
        return (
            query.top(index.answer(query.data, query_keys), 2)[0].tolist(),
            query.top(shards.answer(query.data, query_keys), 2)[0].tolist(),
            own_query.top(encrypted.answer(own_query.data, own_keys), 1)[0].tolist(),
            served.predicted_seconds,
        )

    return [index, shards, client, query, served, encrypted], work


def models() -> tuple[list[object], Callable[[], object]]:
    """A client of a model."""
    from sklearn.linear_model import LinearRegression

    samples = np.random.default_rng(1).normal(size=(30, 3))
    client = kw.compile(LinearRegression().fit(samples, samples[:, 0]), calibration=samples).client()
    encryption = client._encryption
    group, costs = plan.AutomorphismGroup(11), plan.CostModel()

    def work() -> object:
        assert len(client.encrypt(samples[:1])) > 1000
        return len(client.keys()), str(group.rotation(-1)), costs.of_degree(13)

    return [client, encryption, group, costs], work


def accounts() -> tuple[list[object], Callable[[], object]]:
    """Tenants, their keys and their quotas."""
    known = tenants.Accounts({"clinic": ["ab" * 32]})
    quotas = tenants.Quotas(Quota(bytes=1), {"clinic": Quota(bytes=2)})
    return [known, quotas], lambda: (known.known("Bearer none"), quotas.of("clinic"), quotas.of("shop"))


EXERCISES: list[Exercise] = [
    accounts,
    arithmetic,
    masters,
    bootstrap,
    integers,
    thin_client,
    sums,
    similarity,
    models,
]


@pytest.mark.parametrize("name", sorted(documented()))
def test_every_class_says_which_threads_may_use_it(name: str) -> None:
    cls = documented()[name]
    said = re.findall(rf"(?:{ANY}|{ONE})\b[^.]*\.", sentence(cls))
    assert len(said) == 1 or (unchangeable(cls) and name not in PUBLIC), f"{name}: {ANY} or {ONE}"


PUBLIC = {f"keywright.{name}" for name in kw.__all__}


@pytest.mark.parametrize("name", sorted(compiled().keys() - UNLISTED))
def test_compiled_classes_that_any_thread_may_use_are_frozen(name: str) -> None:
    text, frozen = compiled()[name]
    assert ANY in text or ONE in text
    assert frozen or ONE in text


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda exercise: exercise.__name__)
def test_threads_that_share_objects_get_the_same(exercise: Exercise) -> None:
    _, work = exercise()
    expected = work()
    with ThreadPoolExecutor(THREADS) as threads:
        results = list(threads.map(lambda _: work(), range(TIMES)))
    assert results == [expected] * TIMES


def test_every_class_that_any_thread_may_use_is_used_by_several() -> None:
    used = {type(instance) for exercise in EXERCISES for instance in exercise()[0]}
    claimed = {name: cls for name, cls in documented().items() if ANY in sentence(cls)}
    assert {name for name, cls in claimed.items() if cls not in used} == ELSEWHERE.keys()
    for test in ELSEWHERE.values():
        path, _, function = test.partition("::")
        assert f"def {function}(" in (ROOT / "python" / "tests" / path).read_text(encoding="utf-8")
