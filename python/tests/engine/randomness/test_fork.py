"""Forked children never reuse randomness of their parent or a sibling, and never wait for an abandoned
lock."""

from __future__ import annotations

import inspect
import multiprocessing
import os
import pickle
import re
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import keywright as kw
import numpy as np
import pytest
from keywright import _core
from tests.engine.randomness.drawing import (
    ENTROPY,
    SOURCES,
    Source,
    chem,
    ckks,
    client,
    of_ckks,
    pool,
    public_key,
    secret,
)
from tests.oracle import Object, centred, coefficients, places, uniform
from tests.processes import in_child

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.oracle import Signed, Words

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork"),
    pytest.mark.filterwarnings("ignore:This process"),  # of Python 3.12: a warning about threads
]

# These use no randomness, but share a source file with others that do.
QUIET = {
    "ChemDistinguisher",
    "ClientParameters",
    "Derivation",
    "EncryptedSum",
    "EncryptedUpdate",
    "SumParameters",
    "ThresholdParameters",
    "ThresholdShare",  # masks are functions of the request
}
# So are the other abilities of the table's classes.
QUIET_METHODS = {
    "BfvDecryptor": {"decrypt", "noise_budget"},
    "Client": {"decrypt", "from_secret", "from_secret_bytes", "key_stream", "secret_bytes"},
    "Decryptor": {"decrypt", "decrypt_complex"},
    "EncryptionPool": {"close"},
    "MasterKeys": {"derivation", "derive", "from_bytes", "load", "save", "to_bytes"},
    "SecretKey": {"from_bytes", "load", "save", "to_bytes"},
    "SumKey": {"decrypt", "from_bytes", "load", "save", "to_bytes"},
    "ThresholdKey": {"combine", "from_bytes", "to_bytes"},
    "ThresholdParty": {"public_half"},
}


def drawing_classes() -> set[str]:
    """Return the classes that take entropy, and those whose source creates a generator."""
    out = set()
    for name, cls in inspect.getmembers(_core, inspect.isclass):
        for member in (cls, *(getattr(cls, name) for name in dir(cls) if not name.startswith("_"))):
            if callable(member) and "entropy" in (getattr(member, "__text_signature__", None) or ""):
                out.add(name)
    for path in (Path(__file__).parents[4] / "crates/python/src").rglob("*.rs"):
        text = path.read_text()
        if path.name != "randomness.rs" and re.search(r"\b(rng\(|Randomness|Entropy\b)", text):
            out.update(re.findall(r'#\[pyclass\(name = "(\w+)"', text))
    return out


def test_the_table_has_every_class_that_draws() -> None:
    listed: dict[str, set[str]] = {}
    for source in SOURCES:
        name, _, method = source.name.split()[0].partition(".")
        listed.setdefault(name, set()).update({method} - {""})
    assert set(listed) == drawing_classes() - QUIET
    for name, methods in listed.items():
        cls = getattr(_core, name)
        members = {
            method for method in dir(cls) if not method.startswith("_") and callable(getattr(cls, method))
        }
        assert members == methods | QUIET_METHODS.get(name, set()), name


def assert_distinct(source: Source, draws: list[bytes]) -> None:
    """Check that no two outputs share a seed, an error, a mask or a secret."""
    seen = Counter(one for draw in draws for one in source.drawn(draw))
    assert max(seen.values()) == 1, f"{sum(count > 1 for count in seen.values())} of {len(seen)} are shared"


@pytest.fixture(scope="module")
def draws() -> dict[str, list[bytes]]:
    """What one generator of each source draws in this process, in two children and in a child of each, by the
    names of the sources: a process is forked once for all of them."""
    generators = {source.name: (source, source.make(None)) for source in SOURCES}

    def draw(*, everywhere: bool = False) -> dict[str, bytes]:
        return {
            name: source.draw(generator)
            for name, (source, generator) in generators.items()
            if source.copied or everywhere
        }

    def child() -> list[dict[str, bytes]]:
        return [draw(), in_child(draw), draw()]

    rounds = [draw(everywhere=True), *in_child(child), *in_child(child)]
    assert_refused(
        *(partial(source.draw, generator) for source, generator in generators.values() if not source.copied)
    )
    rounds.append(draw(everywhere=True))
    return {name: [each[name] for each in rounds if name in each] for name in generators}


@pytest.mark.parametrize("source", SOURCES, ids=str)
def test_processes_draw_apart(source: Source, draws: dict[str, list[bytes]]) -> None:
    assert len(draws[source.name]) == (8 if source.copied else 2)
    assert_distinct(source, draws[source.name])


def assert_refused(*works: Callable[[], object]) -> None:
    """Check that a child is refused each work, with a message that names both processes."""
    owner = os.getpid()

    def refusal(work: Callable[[], object]) -> tuple[int, int, bool]:
        with pytest.raises(
            kw.errors.RandomnessError, match="process", check=lambda error: error.code == "forked"
        ) as caught:
            work()
        return caught.value.owner, caught.value.process, caught.value.process == os.getpid()

    refusals = in_child(lambda: [refusal(work) for work in works])
    assert len(refusals) == len(works)
    for refused, process, right in refusals:
        assert (refused, right) == (owner, True)
        assert process != owner


def test_given_entropy_is_for_one_process() -> None:
    sources = [source for source in SOURCES if source.entropy == "object"]
    generators = [source.make(ENTROPY) for source in sources]
    works = [partial(source.draw, generator) for source, generator in zip(sources, generators, strict=True)]

    def twice(works: list[partial[bytes]]) -> dict[str, list[bytes]]:
        return {source.name: [work(), work()] for source, work in zip(sources, works, strict=True)}

    assert_refused(*works)
    expected = twice(works)
    assert_refused(*works)
    assert in_child(lambda: twice([partial(each.draw, each.make(ENTROPY)) for each in sources])) == expected


def test_entropy_of_a_call_decides_it_in_every_process() -> None:
    sources = [source for source in SOURCES if source.entropy == "call"]

    def draw() -> dict[str, bytes]:
        return {source.name: source.draw(ENTROPY) for source in sources}

    assert in_child(draw) == draw()


@pytest.mark.parametrize("source", SOURCES, ids=str)
def test_threads_draw_apart(source: Source) -> None:
    generator = source.make(None)
    with ThreadPoolExecutor(8) as threads:
        assert_distinct(source, list(threads.map(lambda _: source.draw(generator), range(8))))


OBJECTS: list[tuple[Source, Any]] = []


def draw_object(place: int) -> tuple[int, bytes]:
    source, generator = OBJECTS[place]
    return os.getpid(), source.draw(generator)


def test_workers_of_a_pool_draw_apart() -> None:
    OBJECTS[:] = [(source, source.make(None)) for source in SOURCES if source.copied]
    with multiprocessing.get_context("fork").Pool(2) as workers:
        for place, (source, generator) in enumerate(OBJECTS):
            draws = workers.map(draw_object, [place] * 4, chunksize=2)
            assert_distinct(source, [source.draw(generator), *(draw for _, draw in draws)])


@pytest.mark.parametrize("source", [source for source in SOURCES if source.entropy == "object"], ids=str)
def test_nothing_that_draws_is_pickled(source: Source) -> None:
    generator = source.make(None)
    with pytest.raises(TypeError, match="not pickled"):
        pickle.dumps(generator)
    method = source.name.split()[0].partition(".")[2]
    with pytest.raises(TypeError, match="not pickled"):
        pickle.dumps(getattr(generator, method))


@pytest.mark.parametrize("way", ["spawn", "forkserver"])
def test_workers_that_are_not_forked_get_no_copies(way: str) -> None:
    context: Any = multiprocessing.get_context(way)
    process = context.Process(target=len, args=(kw.KeyGenerator(secret()),))
    with pytest.raises(TypeError, match="not pickled"):
        process.start()


def test_the_keys_of_a_session_are_the_same_everywhere() -> None:
    """A key stream depends on its session only: child and parent write the same."""
    thin_client = client(None)
    stream = thin_client.key_stream([kw.KeySpec.rotation(ckks(), 1)], thin_client.session())

    def child() -> bytes:
        pieces: list[bytes] = []
        assert stream.write_next(pieces.append)
        return b"".join(pieces)

    assert in_child(child) == in_child(child) == child()
    other = thin_client.key_stream([kw.KeySpec.rotation(ckks(), 1)], in_child(thin_client.session))
    pieces: list[bytes] = []
    other.write_next(pieces.append)
    stream.skip_to(0)
    assert not set(of_ckks().drawn(b"".join(pieces))) & set(of_ckks().drawn(child()))


# ---- no process waits for ever ----


@contextmanager
def threads_that(work: Callable[[], object]) -> Iterator[None]:
    """Run three threads that repeat something."""
    done = threading.Event()

    def loop() -> None:
        while not done.is_set():
            work()

    threads = [threading.Thread(target=loop, daemon=True) for _ in range(3)]
    for thread in threads:
        thread.start()
    yield
    done.set()
    for thread in threads:
        thread.join()


CONTENDED = {"Client.encrypt", "ClientEncryptor.encrypt", "ChemEncryptor.encrypt"}
FREE = {"KeyGenerator.rotation_key", "SumKey.encrypt", "Decryptor.encrypt", "ThresholdKey.encrypt"}
POOL = {"EncryptionPool.encrypt_integers"}


@pytest.mark.parametrize(
    "source", [source for source in SOURCES if source.name in CONTENDED | FREE | POOL], ids=str
)
def test_a_child_waits_for_no_thread_of_its_parent(source: Source) -> None:
    """Locks that threads hold during the fork are never released in the child."""
    generator = source.make(None)

    def child() -> str:
        try:
            source.draw(generator)
        except kw.errors.RandomnessError as error:
            return "refused" if error.code == "forked" else error.code
        # It can make again what it could not use.
        source.draw(source.make(None))
        return "drawn"

    with threads_that(lambda: source.draw(generator)):
        seen = {in_child(child) for _ in range(6)}
    assert seen <= ({"drawn"} if source.name in FREE else {"drawn", "refused"})


def test_a_child_may_use_what_no_thread_was_using() -> None:
    """Several threads of the child may do so at once."""
    generator = client(None)
    generator.encrypt([0])

    def child() -> int:
        with ThreadPoolExecutor(4) as threads:
            return len(set(threads.map(lambda _: generator.encrypt([0]), range(20))))

    assert in_child(child) == 20


def test_threads_that_share_chem_do_not_wait_for_each_other() -> None:
    """Its owner distributes work among the threads of the pool: none may start another call meanwhile."""
    generator = chem(secret, 2.0**-20)(None)
    with threads_that(lambda: generator.encrypt([1] * 64)):
        for _ in range(30):
            generator.encrypt([0] * 64)


def test_a_pool_tells_a_child_nothing_of_its_entries() -> None:
    generator = pool(secret)(None)
    for ask in (
        len,
        lambda generator: generator.metrics,
        lambda generator: generator.fill(),
        lambda generator: generator.close(),
    ):
        assert_refused(lambda ask=ask: ask(generator))  # type: ignore[misc]
    assert in_child(lambda: (repr(generator), bool(generator), generator.capacity)) == (
        "EncryptionPool(level 1, of another process)",
        True,
        2,
    )


def test_keys_that_are_streamed_are_for_one_process(tmp_path: Path) -> None:
    spec = kw.KeySpec.rotation(ckks(), 1)
    kw.KeyGenerator(secret()).save_evaluation_keys(tmp_path / "keys", [spec])
    keys = kw.EvaluationKeys.stream(tmp_path / "keys", ckks(), 1 << 20, [[spec]])
    evaluator = kw.Evaluator(ckks(), keys)
    ciphertext = kw.Encryptor(public_key(secret())).encrypt([0])
    evaluator.rotate(ciphertext, 1)
    assert_refused(lambda: evaluator.rotate(ciphertext, 1))
    assert_refused(lambda: keys.streaming)
    with threads_that(lambda: evaluator.rotate(ciphertext, 1)):
        for _ in range(4):
            assert_refused(lambda: evaluator.rotate(ciphertext, 1))

    def child() -> bytes:
        own = kw.EvaluationKeys.stream(tmp_path / "keys", ckks(), 1 << 20, [[spec]])
        return kw.Evaluator(ckks(), own).rotate(ciphertext, 1).to_bytes()

    assert in_child(child) == evaluator.rotate(ciphertext, 1).to_bytes()


# ---- the value of the repair ----


def row(key: kw.keys.SwitchingKey) -> tuple[int, Words, Words]:
    """Return the Galois element and one row `(b, a)`, `b = -a s(X^(1/g)) + e`, modulo the special prime."""
    read, (p,) = Object.read(key.to_bytes()), ckks().p
    _, element, level, *_ = read.take("BQBBBB")
    *_, seed = read.take("BB32s")
    *_, b = [read.limb(q) for q in [*ckks().q[: level + 1], p]]
    return element, b, uniform(seed, element, 0, len(ckks().q), p, read.n)


def secret_of_equal_errors(first: kw.keys.SwitchingKey, second: kw.keys.SwitchingKey) -> Signed:
    """Recover the secret from two keys for different rotations whose rows have one error.

    At every root `x` of `X^N + 1`, `b - b' = a' s(x^(1/g')) - a s(x^(1/g))`. So each value of `s` gives the
    next one, at `x` to the power of `g / g'`, and after `N/2` of them the first one recurs.
    """
    (g, b, a), (h, c, d), (p,) = row(first), row(second), ckks().p
    n, values = len(b), {}
    at = {int(place): i for i, place in enumerate(places(n))}
    step = g * pow(h, -1, 2 * n) % (2 * n)

    def following(place: int, value: int) -> tuple[int, int]:
        i = at[place * g % (2 * n)]
        return place * step % (2 * n), (int(b[i]) - int(c[i]) + int(a[i]) * value) * pow(int(d[i]), -1, p) % p

    def around(place: int, value: int) -> int:
        values[place] = value
        now, value = following(place, value)
        while now != place:
            values[now] = value
            now, value = following(now, value)
        return value

    for start in (1, 2 * n - 1):
        # Around the orbit, a value v becomes A v + B.
        constant, one = around(start, 0), around(start, 1)
        around(start, constant * pow(1 - (one - constant), -1, p) % p)
    return coefficients(np.array([values[int(place)] for place in places(n)], np.uint64), p)


def test_what_two_keys_of_one_error_give_away() -> None:
    """What forked children revealed before the repair; here by reusing entropy."""
    expected = of_ckks().secret
    keys = [kw.KeyGenerator(secret(), ENTROPY).rotation_key(steps) for steps in (1, 2)]
    assert (secret_of_equal_errors(*keys) == expected).all()

    generator = kw.KeyGenerator(secret())
    seen = [in_child(lambda steps=steps: generator.rotation_key(steps).to_bytes()) for steps in (1, 2)]  # type: ignore[misc]
    keys = [kw.keys.SwitchingKey.from_bytes(data, ckks()) for data in seen]
    assert np.abs(secret_of_equal_errors(*keys)).max() > 1 << 20


def test_what_two_ciphertexts_of_one_mask_give_away() -> None:
    """The difference of their messages, without any key."""
    values = [np.arange(8), np.arange(8) ** 2]
    (q, *_), step = ckks().q, 1 << 20

    def difference(draws: list[bytes]) -> Signed:
        read = [Object.read(data) for data in draws]
        one, other = (coefficients(r.limb(q), q) for r in read if r.take("BB"))
        return centred((one - other) % q, q)

    same = [
        kw.Encryptor(public_key(secret()), ENTROPY).encrypt_coefficients(v, magnitude=49).to_bytes()
        for v in values
    ]
    assert (difference(same)[:8] == step * (values[0] - values[1])).all()
    encryptor = kw.Encryptor(public_key(secret()))
    apart = [in_child(lambda v=v: encryptor.encrypt_coefficients(v, magnitude=49).to_bytes()) for v in values]  # type: ignore[misc]
    assert (np.abs(difference(apart) - difference(same)) > 0).any()
