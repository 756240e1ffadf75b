"""Fixed point, layouts and the engine's sums in Python."""

import json
from typing import Any

import keywright as kw
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from keywright.errors import EncodeError, ParameterError
from keywright.federated import ArrayLayout, Encoding, EncryptedSum, EncryptedUpdate, SumKey, SumParameters
from numpy.typing import NDArray

ENCODING = Encoding(bound=2.0, max_clients=6, max_weight=1000)
KEY = SumKey.generate(ENCODING.parameters, bytes(32))
SESSION = bytes(range(16))


def update(values: list[int], client: int = 1, round: int = 1, weight: int = 5) -> EncryptedUpdate:  # noqa: A002
    return KEY.encrypt(np.array(values), session=SESSION, round=round, client=client, weight=weight)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(1, 1000), st.lists(st.floats(-2, 2), min_size=5, max_size=5)),
        min_size=2,
        max_size=6,
    )
)
def test_an_average_is_within_its_derived_bound(clients: list[tuple[int, list[float]]]) -> None:
    updates = []
    for client, (weight, values) in enumerate(clients):
        integers, clipped = ENCODING.encode(np.array(values), weight)
        assert clipped == 0
        updates.append(KEY.encrypt(integers, session=SESSION, round=1, client=client, weight=weight))
    total = EncryptedSum.of(updates, ENCODING.parameters)
    weights = np.array([weight for weight, _ in clients])
    assert total.total_weight == weights.sum()
    average = ENCODING.decode(KEY.decrypt(total), total.total_weight)
    expected = weights @ np.array([values for _, values in clients]) / weights.sum()
    slack = 8 * np.finfo(np.float64).eps * ENCODING.bound
    assert np.abs(average - expected).max() <= ENCODING.error_bound(len(clients), int(weights.sum())) + slack


def test_values_outside_the_bound_are_clipped_or_refused_as_declared() -> None:
    clip = Encoding(bound=2.0, max_clients=6, max_weight=1000, out_of_range="clip")
    integers, clipped = clip.encode(np.array([-7.0, 2.0, 2.5, 0.0]), 1000)
    assert integers.tolist() == [-ENCODING.magnitude, ENCODING.magnitude, ENCODING.magnitude, 0]
    assert clipped == 2
    with pytest.raises(kw.errors.EncodeError, match=r"2 values .* the largest is value 2, 3\.5") as caught:
        ENCODING.encode(np.array([-2.0, 2.5, 3.5]), 1000)
    assert (caught.value.index, caught.value.value, caught.value.bound) == (2, 3.5, 2.0)
    layout = ArrayLayout.of({"weight": np.zeros(2), "variance": np.zeros((1, 1))})
    with pytest.raises(kw.errors.EncodeError, match="value 0 of array 'variance', 75"):
        ENCODING.encode(np.array([0.0, 2.5, 75.0]), 1000, layout)


def test_values_are_given_as_numpy_takes_them() -> None:
    for values in ([1.0, -0.5], (1.0, -0.5), np.array([1.0, -0.5], np.float16)):
        assert (
            ENCODING.encode(values, 1000)[0].tolist()
            == ENCODING.encode(np.array([1.0, -0.5]), 1000)[0].tolist()
        )


@pytest.mark.parametrize("name", ["bits", "max_weight", "max_clients", "min_clients"])
@pytest.mark.parametrize("value", [2.5, 3.0, True, "3", None])
def test_counts_of_a_declaration_are_integers(name: str, value: Any) -> None:
    counts: dict[str, Any] = {"bits": 30, "max_weight": 1000, "max_clients": 6, "min_clients": 2, name: value}
    with pytest.raises(ParameterError, match=f"{name} is .* it must be an integer"):
        Encoding(bound=2.0, **counts)


def test_an_error_bound_is_of_a_number_of_clients() -> None:
    for clients in (0, -1, 1.5):
        with pytest.raises(ParameterError, match="number of clients"):
            ENCODING.error_bound(clients, 10)  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_values_that_are_not_finite_are_named(value: float) -> None:
    with pytest.raises(kw.errors.EncodeError) as caught:
        ENCODING.encode(np.array([0.0, value]), 1)
    assert caught.value.index == 1


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"bound": 0.0}, "bound"),
        ({"bound": float("nan")}, "bound"),
        ({"bits": 1}, "bits"),
        ({"bits": 41}, "bits"),
        ({"bits": 40, "max_clients": 2**18}, "bits of the modulus"),
        ({"max_clients": 1}, "max_clients"),
        ({"min_clients": 1}, "min_clients"),
        ({"min_clients": 7}, "min_clients"),
        ({"max_weight": 0}, "max_weight"),
        ({"out_of_range": "wrap"}, "out_of_range"),
    ],
)
def test_declarations_are_checked(change: dict[str, object], what: str) -> None:
    arguments: dict[str, object] = {"bound": 1.0, "max_clients": 6, "max_weight": 10}
    with pytest.raises(kw.errors.ParameterError) as caught:
        Encoding(**(arguments | change))  # type: ignore[arg-type]
    assert caught.value.what == what


@pytest.mark.parametrize("weight", [0, 1001, 2.5, float("nan"), "7", True, None])
def test_weights_are_whole_numbers_within_the_declaration(weight: object) -> None:
    with pytest.raises(kw.errors.ParameterError):
        ENCODING.require_weight(weight)
    assert ENCODING.require_weight(3.0) == 3


@pytest.mark.parametrize("total", [0, -1, 1.5, float("nan"), float("inf"), 1 << 64, True])
def test_total_weights_are_those_of_sums(total: Any) -> None:
    for refused in (lambda: ENCODING.decode(np.array([5]), total), lambda: ENCODING.error_bound(2, total)):
        with pytest.raises(ParameterError, match="total weight"):
            refused()


@pytest.mark.parametrize("shape", [(), (2, 2), (0, 3)])
def test_values_are_a_vector(shape: tuple[int, ...]) -> None:
    with pytest.raises(EncodeError, match=r"values have shape .* pass a vector"):
        ENCODING.encode(np.zeros(shape), 5)


def test_the_headroom_is_computed_and_one_more_is_refused() -> None:
    parameters = SumParameters(3, 100)
    key = SumKey.generate(parameters)
    assert 3 <= parameters.capacity < 1000

    def make(client: int) -> EncryptedUpdate:
        return key.encrypt(np.array([100]), session=SESSION, round=1, client=client, weight=1)

    updates = [make(client) for client in range(parameters.capacity)]
    assert key.decrypt(EncryptedSum.of(updates, parameters)).tolist() == [100 * parameters.capacity]
    with pytest.raises(kw.errors.ParameterError) as caught:
        EncryptedSum.of([*updates, make(-1 % 2**64)], parameters)
    assert caught.value.maximum == parameters.capacity
    with pytest.raises(kw.errors.EncodeError) as too_large:
        key.encrypt(np.array([101]), session=SESSION, round=1, client=1, weight=1)
    assert (too_large.value.value, too_large.value.bound) == (101, 100)


def test_updates_that_do_not_belong_together_are_refused() -> None:
    one = update([1, 2])
    for other, reason in [
        (update([1, 2, 3], 2), "number_of_values"),
        (update([1, 2], 2, round=2), "round"),
        (update([1, 2], 1), "duplicate"),
    ]:
        with pytest.raises(kw.errors.AggregationError) as caught:
            EncryptedSum.of([one, other], ENCODING.parameters)
        assert caught.value.code == reason
    with pytest.raises(kw.errors.AggregationError) as caught:
        SumKey.generate(ENCODING.parameters).decrypt(EncryptedSum.of([one], ENCODING.parameters))
    assert caught.value.code == "undecodable"


def test_objects_come_back_from_their_bytes_and_every_flipped_bit_is_found() -> None:
    parameters = ENCODING.parameters
    one = update([1, -2, 3])
    total = EncryptedSum.of([one, update([10, 20, 30], 2)], parameters)
    back = EncryptedSum.from_bytes(total.to_bytes(), parameters)
    assert KEY.decrypt(back).tolist() == [11, 18, 33]
    assert back.contributors == [(1, 5), (2, 5)]
    data = one.to_bytes()
    again = EncryptedUpdate.from_bytes(data, parameters)
    assert (again.session, again.round, again.client, again.weight, again.count) == (SESSION, 1, 1, 5, 3)
    for data in (one.to_bytes(), total.to_bytes()):
        read = EncryptedUpdate.from_bytes if data == one.to_bytes() else EncryptedSum.from_bytes
        for offset in range(len(data)):
            damaged = bytearray(data)
            damaged[offset] ^= 1 << (offset % 8)
            with pytest.raises((kw.errors.FormatError, kw.errors.MismatchError)):
                read(bytes(damaged), parameters)
        for length in range(len(data)):
            with pytest.raises(kw.errors.FormatError):
                read(data[:length], parameters)
        with pytest.raises(kw.errors.FormatError):
            read(data + b"\0", parameters)


def test_other_declarations_and_kinds_are_refused() -> None:
    one = update([1])
    for other in (SumParameters(7, ENCODING.magnitude), SumParameters(6, 100)):
        with pytest.raises((kw.errors.FormatError, kw.errors.MismatchError)):
            EncryptedUpdate.from_bytes(one.to_bytes(), other)
    with pytest.raises(kw.errors.FormatError, match="an encrypted update, not an encrypted sum"):
        EncryptedSum.from_bytes(one.to_bytes(), ENCODING.parameters)
    with pytest.raises(kw.errors.FormatError):
        EncryptedUpdate.from_bytes(KEY.to_bytes(), ENCODING.parameters)


def test_the_key_is_stored_and_not_shown() -> None:
    total = EncryptedSum.of([update([4])], ENCODING.parameters)
    assert SumKey.from_bytes(KEY.to_bytes(), ENCODING.parameters).decrypt(total).tolist() == [4]
    assert repr(KEY) == "SumKey(..)"


def test_layouts_cut_and_mend_arrays() -> None:
    arrays: dict[str, NDArray[Any]] = {
        "w": np.arange(6, dtype=np.float32).reshape(2, 3),
        "count": np.array(3, dtype=np.int64),
        "b": np.array([0.25], dtype=np.float64),
    }
    layout = ArrayLayout.of(arrays)
    assert layout.count == 8
    back = ArrayLayout.from_bytes(layout.to_bytes()).unflatten(layout.flatten(arrays) + 0.1)
    assert [(value.shape, value.dtype) for value in back.values()] == [
        (value.shape, value.dtype) for value in arrays.values()
    ]
    assert back["count"] == 3
    others: list[dict[str, NDArray[Any]]] = [
        {**arrays, "w": arrays["w"].T},
        {"w": arrays["w"]},
        dict(reversed(arrays.items())),
    ]
    for other in others:
        with pytest.raises(kw.errors.AggregationError) as caught:
            layout.flatten(other)
        assert caught.value.code == "shapes"
    for kind in ("float16", "float32", "float64"):
        for name in arrays:
            other = {**arrays, name: arrays[name].astype(kind)}
            if name != "count":
                assert layout.flatten(other).tolist() == layout.flatten(arrays).tolist()
                continue
            with pytest.raises(kw.errors.AggregationError, match="'count' was received as int64") as caught:
                layout.flatten(other)
            assert caught.value.code == "types"
    wrong: list[dict[str, NDArray[Any]]] = [
        {},
        {"x": np.zeros(0)},
        {"x": np.array(["a"])},
        {"x": np.zeros(2, complex)},
    ]
    for bad in wrong:
        with pytest.raises(kw.errors.EncodeError):
            ArrayLayout.of(bad)


@pytest.mark.parametrize(
    "entries",
    [
        "{",
        [],
        [["x", [2], "float32"], ["x", [2], "float32"]],
        [["x", [-2], "float32"]],
        [["x", [2**32], "float32"]],
        [["x", [2**31, 2**31], "float32"]],
        [["x", [1.5], "float32"]],
        [["x", [True], "float32"]],
        [["x", [2], "object"]],
        [["x", [2], "no such type"]],
        [["x", [1] * 33, "float32"]],
        [["x", 2, "float32"]],
        [[1, [2], "float32"]],
        ["abc"],
        7,
    ],
)
def test_layouts_from_outside_are_checked(entries: object) -> None:
    data = entries if isinstance(entries, str) else json.dumps(entries)
    with pytest.raises(kw.errors.FormatError):
        ArrayLayout.from_bytes(data.encode())


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from(["?", "i1", "i2", "i4", "i8", "u1", "u8", "f2", "f4", "f8", "c16"]),
    st.sampled_from([2, 8, 24, 40]),
    st.one_of(st.integers(-1, 2001), st.sampled_from([1.5, float("nan"), float("inf"), True, 10**9])),
    st.floats(-4, 4),
)
def test_any_type_and_weight_averages_within_the_bound_or_is_refused(
    dtype: str, bits: int, weight: Any, value: float
) -> None:
    encoding = Encoding(bound=4.0, max_clients=6, max_weight=1000, bits=bits)
    kind = np.dtype(dtype).kind
    ends: list[float] = [np.iinfo(dtype).min, np.iinfo(dtype).max] if kind in "iu" else []
    if kind == "f":
        ends = [float(np.finfo(dtype).min), float("nan"), float("inf")]
    taken = type(weight) is int and 1 <= weight <= 1000
    for number in (value, 0, 3, *ends):
        values = np.full(3, abs(value) if number == value and kind in "?u" else number).astype(dtype)
        exact = values.astype(complex)
        if not taken or kind == "c" or not (np.abs(exact) <= 4).all():
            with pytest.raises((EncodeError, ParameterError)):
                encoding.encode(values, weight)
            continue
        integers, _ = encoding.encode(values, weight)
        error = np.abs(encoding.decode(integers, weight) - exact.real)
        assert error.max() <= encoding.error_bound(1, weight) * (1 + 1e-9) + 1e-12


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int16, np.int64, np.uint64])
def test_integers_of_numpy_do_not_wrap(kind: type[np.integer[Any]]) -> None:
    """With 40 bits of `numpy.uint8`, integers went up to 255 without a word."""
    own = Encoding(1.0, 4, 100, bits=40)
    assert Encoding(1.0, kind(4), kind(100), bits=kind(40), min_clients=kind(2)) == own  # type: ignore[arg-type]
    assert Encoding(1.0, kind(4), kind(100), bits=kind(40)).magnitude == own.magnitude == 2**39 - 1  # type: ignore[arg-type]


def test_masked_values_are_no_numbers() -> None:
    with pytest.raises(kw.errors.EncodeError, match="masked"):
        Encoding(1.0, 4, 100).encode(np.ma.masked_array([0.5, 0.1], mask=[True, False]), 1)
