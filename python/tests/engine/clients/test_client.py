"""Thin clients from Python: integers in, bytes out, and back. What they compute is tested in Rust."""

from __future__ import annotations

import io

import keywright as kw
import numpy as np
import pytest
from numpy.typing import NDArray
from tests.bootstraps import DEGREE_30

ENTROPY = bytes(range(32))
FRACTION_BITS = 20
ONE = 1 << FRACTION_BITS


@pytest.fixture(scope="module")
def parameters() -> kw.Parameters:
    return kw.Parameters.from_bits(12, [50], [], 43)


@pytest.fixture(scope="module")
def thin(parameters: kw.Parameters) -> kw.thin.Parameters:
    return kw.thin.Parameters(parameters, scale=1 << 43, fraction_bits=FRACTION_BITS, slots=2048)


@pytest.fixture(scope="module")
def client(thin: kw.thin.Parameters) -> kw.thin.Client:
    return kw.thin.Client(thin, ENTROPY)


@pytest.fixture(scope="module")
def sender(client: kw.thin.Client) -> kw.thin.Encryptor:
    return kw.thin.Encryptor(client.public_key(), client.parameters, ENTROPY)


@pytest.fixture(scope="module")
def numbers(thin: kw.thin.Parameters) -> NDArray[np.int64]:
    rng = np.random.default_rng(1)
    numbers = rng.integers(-ONE, ONE, thin.capacity, endpoint=True)
    numbers[:2] = [ONE, -ONE]
    return numbers


def places(slots: int) -> NDArray[np.int64]:
    """Return the coefficient of every number of complex values in all slots."""
    bits = slots.bit_length() - 1
    reverse = np.array([int(f"{j:0{bits}b}"[::-1], 2) for j in range(slots)])
    return np.concatenate([reverse, reverse + slots])


@pytest.mark.parametrize("dropped", [None, (0, 0), (6, 2)])
@pytest.mark.parametrize("secret", [True, False])
def test_a_server_reads_what_a_client_wrote(
    parameters: kw.Parameters,
    client: kw.thin.Client,
    sender: kw.thin.Encryptor,
    numbers: NDArray[np.int64],
    secret: bool,
    dropped: tuple[int, int] | None,
) -> None:
    thin = client.parameters
    if secret:
        dropped = None if dropped is None else (dropped[0], 0)
        data = client.encrypt(numbers, dropped=None if dropped is None else dropped[0])
    else:
        data = sender.encrypt(numbers, dropped=dropped)
    assert len(data) == thin.ciphertext_bytes(secret=secret, dropped=dropped)
    ciphertext = thin.read_upload(data, parameters)
    assert (ciphertext.level, ciphertext.packing) == (0, "coefficients")
    key = kw.SecretKey.from_bytes(client.secret_bytes(), parameters)
    seen = kw.Decryptor(key).decrypt(ciphertext)[places(2048)]
    assert np.abs(seen - numbers / ONE).max() <= ciphertext.error_bound
    answer = thin.write_answer(ciphertext, growth=2)
    # Half a unit of the last place for reading.
    bound = 2 * ciphertext.error_bound * ONE + 0.5
    assert np.abs(client.decrypt(answer) - numbers).max() <= bound
    few = client.decrypt(answer, 3)
    assert few.dtype == np.int64
    assert np.abs(few - numbers[:3]).max() <= bound


def test_what_stands_for_a_coefficient_is_the_middle_of_its_interval(
    parameters: kw.Parameters, client: kw.thin.Client, sender: kw.thin.Encryptor, numbers: NDArray[np.int64]
) -> None:
    """Errors of 2^20 units and more, beside which those of encryption are nothing, have the mean and the
    deviation of uniform ones about zero, within six deviations of the estimates."""
    key = kw.SecretKey.from_bytes(client.secret_bytes(), parameters)
    n, bits = parameters.n, 20
    uniform = 2.0**bits / np.sqrt(12)

    def errors(data: bytes) -> NDArray[np.float64]:
        read = kw.Decryptor(key).decrypt(client.parameters.read_upload(data, parameters))
        return (read[places(2048)] - numbers / ONE) * 2.0**43

    deviations = errors(client.encrypt(numbers, dropped=bits))
    assert abs(deviations.mean()) <= 6 * uniform / np.sqrt(n)
    assert np.abs(deviations).max() <= 2.0 ** (bits - 1) + 64
    # Of c_1 each coefficient has the errors of two thirds of n others.
    deviations = errors(sender.encrypt(numbers, dropped=(0, bits)))
    deviation = uniform * np.sqrt(2 * n / 3)
    assert abs(deviations.std() / deviation - 1) <= 6 * np.sqrt(1 / (2 * n) + 1 / (8 * n))


@pytest.mark.parametrize("dtype", ["uint8", "int16", "int64", "bool"])
def test_numbers_of_any_integer_type(client: kw.thin.Client, sender: kw.thin.Encryptor, dtype: str) -> None:
    numbers = np.array([0, 1, 1, 0, 1], dtype=dtype)
    seen = client.decrypt(sender.encrypt(numbers), 5)
    assert np.abs(seen - numbers.astype(np.int64)).max() <= 1
    assert len(sender.encrypt([1, 2])) == client.parameters.ciphertext_bytes(secret=False)


def test_groups_of_small_integers_are_added(parameters: kw.Parameters) -> None:
    thin = kw.thin.Parameters(parameters, scale=1 << 43, fraction_bits=FRACTION_BITS)
    client = kw.thin.Client(thin, ENTROPY)
    rng = np.random.default_rng(2)
    first, second = rng.integers(0, 64, (2, 5000))
    assert thin.group_size(7) == 2
    grouped = thin.group(first, 7)
    assert grouped.tolist() == (first[::2] + (first[1::2] << 7)).tolist()
    uploads = [client.encrypt(thin.group(integers, 7)) for integers in (first, second)]
    total = kw.Evaluator(parameters).add(*(thin.read_upload(upload, parameters) for upload in uploads))
    numbers = client.decrypt(thin.write_answer(total), 2500)
    assert np.array_equal(thin.split(numbers, 7), first + second)
    assert np.array_equal(thin.split(numbers, 7, 3), (first + second)[:3])
    for wrong in ([128], [-1]):
        with pytest.raises(kw.errors.EncodeError, match="integer 0"):
            thin.group(wrong, 7)
    with pytest.raises(kw.errors.ParameterError):
        thin.group_size(FRACTION_BITS + 1)
    with pytest.raises(kw.errors.EncodeError, match="integers to split off"):
        thin.split(numbers, 7, 5001)
    for outside in (-1, 1 << 14, 2**63 - 1):
        with pytest.raises(kw.errors.EncodeError, match=r"number 1 is outside 0..2\^14") as caught:
            thin.split(np.asarray([0, outside]), 7, 1)
        assert (caught.value.index, caught.value.maximum) == (1, 2**14 - 1)


def test_the_same_entropy_makes_the_same_bytes(
    parameters: kw.Parameters, thin: kw.thin.Parameters, numbers: NDArray[np.int64]
) -> None:
    def upload(client: kw.thin.Client) -> list[bytes]:
        return [client.secret_bytes(), client.public_key(), client.encrypt(numbers), client.session()]

    assert upload(kw.thin.Client(thin, ENTROPY)) == upload(kw.thin.Client(thin, ENTROPY))
    first, second = kw.thin.Client(thin), kw.thin.Client(thin)
    assert first.secret_bytes() != second.secret_bytes()
    again = kw.thin.Client.from_secret_bytes(first.secret_bytes(), thin)
    whole = kw.SecretKey.from_bytes(first.secret_bytes(), parameters)
    for owner in (again, kw.thin.Client.from_secret(whole, thin)):
        assert owner.secret_bytes() == first.secret_bytes()
    sender = kw.thin.Encryptor(first.public_key(), thin)
    assert np.abs(again.decrypt(sender.encrypt(numbers)) - numbers).max() <= 1


def test_parameters_are_bytes_and_back(thin: kw.thin.Parameters, parameters: kw.Parameters) -> None:
    assert kw.thin.Parameters.from_bytes(thin.to_bytes()) == thin
    assert (thin.log_n, thin.fraction_bits, thin.maximum) == (12, FRACTION_BITS, ONE)
    assert (thin.capacity, thin.slots, thin.values) == (4096, 2048, "complex")
    assert (thin.scale, thin.modulus.bit_length()) == (1 << 43, 50)
    plain = kw.thin.Parameters(parameters, scale=1 << 40, fraction_bits=8)
    assert (plain.capacity, plain.slots, plain.values) == (4096, None, None)
    assert plain != thin
    real = kw.thin.Parameters(parameters, scale=1 << 40, fraction_bits=8, slots=16, values="real")
    assert (real.capacity, real.values) == (16, "real")
    assert real.ciphertext_bytes(dropped=(0, 0)) < 300
    assert "2^12" in repr(thin)
    assert "16 real slots" in repr(real)


def test_what_is_refused_names_the_value(
    thin: kw.thin.Parameters,
    client: kw.thin.Client,
    sender: kw.thin.Encryptor,
    parameters: kw.Parameters,
) -> None:
    with pytest.raises(kw.errors.EncodeError) as refusal:
        client.encrypt([0, ONE, ONE + 1])
    assert (refusal.value.index, refusal.value.maximum) == (2, ONE)
    with pytest.raises(kw.errors.EncodeError) as refusal:
        sender.encrypt(np.zeros(4097, dtype=np.int64))
    assert (refusal.value.count, refusal.value.bound) == (4097, 4096)
    for wrong in ([0.5], [[1]], 1, ["a"], np.array([1 << 63], dtype=np.uint64)):
        with pytest.raises(kw.errors.EncodeError):
            client.encrypt(wrong)
    with pytest.raises(kw.errors.ParameterError) as refused:
        client.encrypt([1], dropped=39)
    assert (refused.value.value, refused.value.maximum) == (39, 38)
    with pytest.raises(kw.errors.ParameterError):
        thin.ciphertext_bytes(dropped=(0, 1))
    data = sender.encrypt([1])
    for damaged in (b"", data[:-1], data + b"\0", data[:5000] + b"\1" + data[5001:]):
        with pytest.raises(kw.errors.FormatError):
            client.decrypt(damaged)
        with pytest.raises(kw.errors.FormatError):
            thin.read_upload(damaged, parameters)
    with pytest.raises(kw.errors.FormatError):
        thin.read_upload(client.secret_bytes(), parameters)
    with pytest.raises(kw.errors.EncodeError) as refusal:
        client.decrypt(data, 5000)
    assert refusal.value.bound == 4096
    with pytest.raises(kw.errors.FormatError):
        kw.thin.Parameters.from_bytes(data)
    with pytest.raises(kw.errors.RandomnessError):
        kw.thin.Client(thin, bytes(32))
    with pytest.raises(kw.errors.ParameterError):
        kw.thin.Parameters(parameters, scale=1 << 49, fraction_bits=8)
    with pytest.raises(kw.errors.ParameterError):
        kw.thin.Parameters(parameters, scale=1 << 40, fraction_bits=8, slots=3)
    with pytest.raises(kw.errors.ParameterError):
        thin.write_answer(thin.read_upload(data, parameters), growth=1)
    other = kw.thin.Parameters(kw.Parameters.from_bits(12, [48], [], 40), scale=1 << 40, fraction_bits=8)
    with pytest.raises(kw.errors.MismatchError, check=lambda error: error.code == "parameters"):
        kw.thin.Encryptor(client.public_key(), other)
    with pytest.raises(kw.errors.MismatchError, check=lambda error: error.code == "parameters"):
        kw.thin.Client.from_secret_bytes(client.secret_bytes(), other)
    with pytest.raises(kw.errors.MismatchError, check=lambda error: error.code == "parameters"):
        kw.thin.Client.from_secret(kw.SecretKey.from_bytes(client.secret_bytes(), parameters), other)
    with pytest.raises(TypeError):
        client.__reduce__()


def test_the_keys_of_a_stream_come_in_pieces_and_go_on_where_they_were_cut() -> None:
    parameters = kw.Parameters.from_bits(11, [50, 40, 40], [50], 40, insecure=True)
    thin = kw.thin.Parameters(parameters, scale=1 << 40, fraction_bits=FRACTION_BITS)
    client = kw.thin.Client(thin, ENTROPY)
    specs = [kw.KeySpec.relinearization(parameters), kw.KeySpec.rotation(parameters, 3, 1)]
    session = client.session()
    stream = client.key_stream(specs, session)
    assert (len(stream), stream.next) == (2, 0)
    whole, told = [io.BytesIO(), io.BytesIO()], []
    for file in whole:
        assert stream.write_next(file.write, lambda *at: told.append(at))
    assert not stream.write_next(io.BytesIO().write)
    assert stream.sizes == [len(file.getvalue()) for file in whole]
    assert stream.total_bytes == sum(stream.sizes)
    assert told == sorted(told)
    assert {total for _, total in told} == {stream.total_bytes}
    assert [kw.keys.SwitchingKey.from_bytes(f.getvalue(), parameters).spec for f in whole] == specs

    again = client.key_stream(specs, session)
    again.skip_to(1)

    def refuse(data: bytes) -> None:
        raise ConnectionError(f"the line is cut before {len(data)} bytes")

    with pytest.raises(ConnectionError, match="the line is cut"):
        again.write_next(refuse)
    assert again.next == 1
    rest = io.BytesIO()
    assert again.write_next(rest.write)
    assert rest.getvalue() == whole[1].getvalue()
    with pytest.raises(kw.errors.ParameterError) as refused:
        again.skip_to(3)
    assert refused.value.maximum == 2
    foreign = kw.Parameters.from_bits(11, [50, 40], [50], 40, insecure=True)
    with pytest.raises(kw.errors.MismatchError, check=lambda error: error.code == "parameters"):
        client.key_stream([*specs, kw.KeySpec.rotation(foreign, 1)], session)
    with pytest.raises(kw.errors.ParameterError):
        client.key_stream([kw.KeySpec.rotation(parameters, 1, seeded=False)], session)
    for repeated in ([*specs, specs[0]], specs * 100_000):
        with pytest.raises(kw.errors.ParameterError, match="copies of a key"):
            client.key_stream(repeated, session)
    assert len(client.key_stream([], session)) == 0


def test_a_key_of_a_session_is_the_same_in_every_list_and_has_nothing_of_another() -> None:
    parameters = kw.Parameters.from_bits(11, [50, 40, 40], [50], 40, insecure=True)
    client = kw.thin.Client(
        kw.thin.Parameters(parameters, scale=1 << 40, fraction_bits=FRACTION_BITS), ENTROPY
    )
    session = client.session()
    specs = [kw.KeySpec.rotation(parameters, 1, 1), kw.KeySpec.rotation(parameters, 3, 1)]

    def session_keys(*chosen: kw.KeySpec) -> list[bytes]:
        stream, files = client.key_stream(chosen, session), [io.BytesIO() for _ in chosen]
        assert all(stream.write_next(file.write) for file in files)
        return [file.getvalue() for file in files]

    first, second = session_keys(*specs)
    assert [session_keys(specs[0]), session_keys(specs[1])] == [[first], [second]]
    assert session_keys(specs[1], specs[0]) == [second, first]
    # Header, spec, number of digits, seed: it is another one at the same place of another list.
    seed = slice(44 + 14 + 1, 44 + 14 + 1 + 32)
    assert first[seed] != second[seed]
    assert session_keys(kw.KeySpec.rotation(parameters, 1, 2))[0][seed] not in (first[seed], second[seed])


def test_who_takes_a_key_can_use_the_client_and_look_at_the_stream_but_not_move_it() -> None:
    parameters = kw.Parameters.from_bits(11, [50, 40], [50], 40, insecure=True)
    client = kw.thin.Client(
        kw.thin.Parameters(parameters, scale=1 << 40, fraction_bits=FRACTION_BITS), ENTROPY
    )
    stream = client.key_stream([kw.KeySpec.relinearization(parameters)], client.session())
    seen = []

    def write(data: bytes) -> None:
        seen.append((stream.next, len(client.encrypt([1])) > 0, len(client.session())))
        for move in (lambda: stream.skip_to(0), lambda: stream.write_next(io.BytesIO().write)):
            with pytest.raises(RuntimeError, match="is being written"):
                move()

    assert stream.write_next(write)
    assert set(seen) == {(0, True, 32)}
    assert stream.next == 1


def test_squares_come_back_through_a_bootstrapping() -> None:
    q_bits = [50, 40, 40, 45, 45, 45, *[50] * 14]
    parameters = kw.Parameters.from_bits(10, q_bits, [50, 50, 50], 45, insecure=True)
    plan = kw.BootstrapperPlan(
        parameters,
        slots=16,
        **DEGREE_30,
        output_level=5,
    )
    thin = kw.thin.Parameters.from_bytes(plan.client_parameters(30).to_bytes(), insecure=True)
    client = kw.thin.Client(thin, ENTROPY)
    numbers = np.random.default_rng(3).integers(-(1 << 29), 1 << 29, thin.capacity)
    upload = client.encrypt(numbers, dropped=1)

    # The server: it gets the keys, the parameters and the upload.
    specs = [*plan.required_keys, kw.KeySpec.relinearization(parameters, 5)]
    stream, keys = client.key_stream(specs, client.session()), kw.EvaluationKeys(parameters)
    while True:
        file = io.BytesIO()
        if not stream.write_next(file.write):
            break
        keys.add(kw.keys.SwitchingKey.from_bytes(file.getvalue(), parameters))
    evaluator, bootstrapper = kw.Evaluator(parameters, keys), kw.Bootstrapper(plan)
    slots = bootstrapper.bootstrap_coefficients(evaluator, thin.read_upload(upload, parameters))
    low = bootstrapper.slots_to_coeffs(evaluator, evaluator.square(slots))
    answer = thin.write_answer(low, growth=1.5)

    values = (numbers[:16] + 1j * numbers[16:]) / 2**30
    expected = values**2
    seen = client.decrypt(answer) / 2**30
    # The answer's bound, rounding to numbers, and the square of what was rounded.
    bound = 1.5 * low.error_bound + 2 / 2**30
    assert np.abs(seen[:16] - expected.real).max() <= bound
    assert np.abs(seen[16:] - expected.imag).max() <= bound
