"""Flower's own components with the mod and the strategy: rounds, and replies that must not count."""

from collections.abc import Callable, Iterable
from typing import Any

import keywright as kw
import numpy as np
import pytest
from flwr.app import Array, ArrayRecord, ConfigRecord, Message, MetricRecord
from flwr.serverapp.strategy import FedAvg
from keywright.federated import ArrayLayout, Encoding, EncryptedFedAvg, EncryptionMod, SumKey, decrypt_arrays
from keywright.federated.encryption_mod import encode_update
from keywright.federated.loopback import RUN_ID
from keywright.federated.records import UPDATE, session
from numpy.typing import NDArray
from tests.federated.loopback import Tamper, TamperedGrid, app

NODES = (11, 22, 33, 44)
ENCODING = Encoding(bound=4.0, max_clients=4, max_weight=500)
KEY = SumKey.generate(ENCODING.parameters, bytes(32))
START = {"w": np.linspace(-1, 1, 2100, dtype=np.float32).reshape(3, 700), "b": np.zeros(2, np.float32)}
Arrays = dict[str, NDArray[Any]]
Train = Callable[[Arrays, int], Arrays]


def samples(node: int) -> int:
    return node * 10


def train(arrays: Arrays, node: int) -> Arrays:
    """Return arrays that depend on model and node, so that rounds compound."""
    return {name: (array * 0.5 + node / 50).astype(array.dtype) for name, array in arrays.items()}


def record(arrays: Arrays = START) -> ArrayRecord:
    return ArrayRecord({name: Array(value) for name, value in arrays.items()})


class Federation:
    """A run of several rounds, with the clients' apps and tampering."""

    def __init__(
        self, *, rounds: int = 1, train: Train = train, tamper: Tamper | None = None, **options: Any
    ) -> None:
        self.encoding = options.pop("encoding", ENCODING)
        mod = EncryptionMod(KEY, self.encoding)
        weights = options.pop("samples", samples)
        self.grid = TamperedGrid({node: app([mod], train, weights) for node in NODES}, tamper)
        self.strategy = EncryptedFedAvg(self.encoding, **options)
        self.result = self.strategy.start(self.grid, record(), num_rounds=rounds)

    @property
    def metrics(self) -> MetricRecord:
        return self.result.train_metrics_clientapp[max(self.result.train_metrics_clientapp)]

    def model(self) -> Arrays:
        return decrypt_arrays(self.result.arrays, KEY, self.encoding)

    def reasons(self) -> list[tuple[int, str]]:
        return [(r.node, getattr(r.error, "code", type(r.error).__name__)) for r in self.strategy.refusals]


def expected(rounds: int, nodes: tuple[int, ...] = NODES) -> tuple[Arrays, float]:
    """Return the averages in double precision, and the bound on the effect of rounding."""
    arrays: Arrays = {name: array.astype(np.float64) for name, array in START.items()}
    total = sum(map(samples, nodes))
    step = ENCODING.error_bound(len(nodes), total)
    # float32 stores the model between rounds, and training rounds to it once: values stay below 2.
    single = 4 * float(np.finfo(np.float32).eps) * 2
    bound = 0.0
    for _ in range(rounds):
        trained = [{name: array * 0.5 + node / 50 for name, array in arrays.items()} for node in nodes]
        arrays = {
            name: np.sum([samples(node) * t[name] for node, t in zip(nodes, trained, strict=True)], 0) / total
            for name in arrays
        }
        bound = bound / 2 + step + single
    return arrays, bound


def assert_average(federation: Federation, rounds: int = 1, nodes: tuple[int, ...] = NODES) -> None:
    average, bound = expected(rounds, nodes)
    model = federation.model()
    assert model.keys() == START.keys()
    for name, array in model.items():
        assert array.dtype == START[name].dtype
        assert np.abs(array - average[name]).max() <= bound


def rewrite(reply: Message, data: bytes) -> Message:
    arrays = dict(reply.content.array_records["arrays"])
    reply.content["arrays"] = ArrayRecord({**arrays, UPDATE: Array("uint8", (len(data),), UPDATE, data)})
    return reply


def update_bytes(reply: Message) -> bytes:
    return reply.content.array_records["arrays"][UPDATE].data


def test_rounds_are_those_of_fedavg_within_rounding() -> None:
    federation = Federation(rounds=3)
    assert_average(federation, rounds=3)
    plain = FedAvg().start(
        TamperedGrid({node: app([], train, samples) for node in NODES}), record(), num_rounds=3
    )
    _, bound = expected(3)
    for name, array in federation.model().items():
        assert np.abs(array - plain.arrays[name].numpy()).max() <= 2 * bound
    assert federation.metrics["keywright-updates"] == 4
    assert federation.metrics["keywright-refused"] == 0
    assert federation.metrics["keywright-missing"] == 0
    # Flower adds one weighted loss a client, in the order of arrival: a rounding each for weight and sum.
    loss = federation.metrics["loss"]
    assert isinstance(loss, float)
    assert abs(loss - 0.5) <= 2 * len(NODES) * np.finfo(float).eps
    received = federation.metrics["keywright-bytes-received"]
    assert isinstance(received, int)
    assert received < 4 * (2102 * ENCODING.parameters.value_bytes + 200)
    # Evaluation happens on the decrypted model.
    total = sum(float(np.abs(array).sum()) for array in federation.model().values())
    seen = federation.result.evaluate_metrics_clientapp[3]["total"]
    assert isinstance(seen, float)
    assert abs(seen - total) <= 1e-5 * total


def test_the_server_sees_no_model() -> None:
    """What passes the server is neither correlated with the model nor equal for equal models."""
    seen: list[bytes] = []

    def watch(_: int, reply: Message) -> Message:
        if "arrays" in reply.content:
            seen.append(update_bytes(reply))
        return reply

    federation = Federation(rounds=1, train=lambda arrays, _: arrays, tamper=watch)
    assert len(set(seen)) == len(NODES)
    for data in [*seen, federation.result.arrays["keywright.sum"].data]:
        body = np.frombuffer(data, np.uint8)[-2102 * ENCODING.parameters.value_bytes - 4 : -4]
        low = body[: 4 * 2100].view(np.uint32).astype(np.float64)
        assert abs(np.corrcoef(low, START["w"].ravel())[0, 1]) < 6 / np.sqrt(2100)


def test_only_some_clients_take_part() -> None:
    federation = Federation(rounds=4, fraction_train=0.5, fraction_evaluate=0.5)
    assert federation.metrics["keywright-updates"] == 2
    assert federation.model().keys() == START.keys()


def test_a_client_that_vanishes_or_fails_is_left_out() -> None:
    def lose(node: int, reply: Message) -> Message | None:
        return None if node == 22 and "arrays" in reply.content else reply

    federation = Federation(tamper=lose)
    assert federation.metrics["keywright-missing"] == 1
    assert_average(federation, nodes=(11, 33, 44))

    def diverge(arrays: Arrays, node: int) -> Arrays:
        trained = train(arrays, node)
        if node == 33:
            trained["w"][1, 5] = np.nan
        return trained

    federation = Federation(train=diverge)
    assert_average(federation, nodes=(11, 22, 44))


def test_a_model_of_another_shape_is_left_out() -> None:
    def reshape(arrays: Arrays, node: int) -> Arrays:
        trained = train(arrays, node)
        return {"w": trained["w"].T, "b": trained["b"]} if node == 11 else trained

    assert_average(Federation(train=reshape), nodes=(22, 33, 44))


def explode(arrays: Arrays, node: int) -> Arrays:
    trained = train(arrays, node)
    if node == 44:
        trained["b"][:] = [1e6, -1e6]
    return trained


def test_values_above_the_bound_are_refused_and_the_array_is_named() -> None:
    """The client learns which value; the server, which Flower sends the exception's text, only the array."""
    failures: list[str] = []

    def watch(_: int, reply: Message) -> Message:
        if reply.has_error():
            failures.append(str(reply.error.reason))
        return reply

    federation = Federation(train=explode, tamper=watch)
    assert_average(federation, nodes=(11, 22, 33))
    assert federation.metrics["keywright-missing"] == 1
    (reason,) = failures
    assert "array 'b' has values above the bound 4.0" in reason
    assert "1e" not in reason
    with pytest.raises(kw.errors.EncodeError) as caught:
        encode_update(ENCODING, ArrayLayout.of(START), record(explode(START, 44)), 44, 440)
    assert (caught.value.value, caught.value.index) == (1e6, 2100)
    assert "value 0 of array 'b', 1000000.0" in str(caught.value.__cause__)


def test_values_above_the_bound_are_clipped_and_the_server_is_told_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clip = Encoding(bound=4.0, max_clients=4, max_weight=500, out_of_range="clip")
    federation = Federation(train=explode, encoding=clip)
    total = sum(map(samples, NODES))
    assert "2 values of the update were clipped" in caplog.text
    others = sum(samples(node) * node / 50 for node in NODES[:3])
    for mean, sign in zip(federation.model()["b"], (1, -1), strict=True):
        assert mean == pytest.approx((others + sign * 4.0 * samples(44)) / total, abs=1e-6)


class Views:
    """The parts of every reply that the server reads, beside the update itself."""

    def __init__(self) -> None:
        self.seen: dict[int, dict[str, object]] = {}

    def __call__(self, sender: int, reply: Message) -> Message:
        if not reply.has_error() and "arrays" in reply.content:
            metrics = {name: dict(record) for name, record in reply.content.metric_records.items()}
            configurations = {name: dict(record) for name, record in reply.content.config_records.items()}
            record = reply.content.array_records["arrays"]
            arrays = {key: (array.dtype, array.shape, len(array.data)) for key, array in record.items()}
            self.seen[sender] = {"metrics": metrics, "config": configurations, "arrays": arrays}
        return reply


def test_the_server_s_view_of_a_client_does_not_depend_on_its_update() -> None:
    """Metrics, lengths and names are those of a client with zeros; only the encrypted update differs."""
    views = []
    for factor in (0.0, 0.05, 4.0 / 44):
        view = Views()

        def scaled(arrays: Arrays, node: int, factor: float = factor) -> Arrays:
            return {name: (array * 0 + factor * node).astype(array.dtype) for name, array in arrays.items()}

        Federation(train=scaled, tamper=view)
        views.append(view.seen)
    assert views[0]
    assert all(view == views[0] for view in views)


@pytest.mark.parametrize("bad", [float("nan"), 75.25])
def test_an_error_that_reaches_the_server_names_no_value(bad: float) -> None:
    """Flower puts the text of a client's exception into its reply."""
    arrays = {"w": np.zeros((3, 700), np.float32), "b": np.array([0.5, bad], np.float32)}
    with pytest.raises(kw.errors.EncodeError, match="array 'b'") as refusal:
        encode_update(ENCODING, ArrayLayout.of(START), record(arrays), 11, 110)
    assert str(bad) not in str(refusal.value)
    assert str(bad) in str(refusal.value.__cause__)


@pytest.mark.parametrize(
    "array",
    [
        Array(np.array(["3.14159", "secret"])),
        Array(np.array([b"secret", b"1"])),
        Array(np.array([0.5, 0.25 + 1j])),
        Array("float32", (2,), "numpy.ndarray", b"\x93NUMPY\x01\x00\x10\x00'secret-header' \n"),
    ],
    ids=["text", "bytes", "complex", "malformed"],
)
def test_arrays_that_are_not_of_real_numbers_are_refused_without_their_contents(array: Array) -> None:
    """Conversions of numpy quote what they cannot convert, and drop imaginary parts with a warning."""
    with pytest.raises(kw.errors.EncodeError, match="is not sent") as refusal:
        encode_update(ENCODING, ArrayLayout.of(START), ArrayRecord({"w": record()["w"], "b": array}), 11, 110)
    assert "secret" not in str(refusal.value)
    assert "3.14" not in str(refusal.value)


def only(node: int, change: Callable[[Message], Message]) -> Tamper:
    return lambda sender, reply: change(reply) if sender == node and "arrays" in reply.content else reply


def other_run(reply: Message) -> Message:
    values = np.zeros(2102, np.int64)
    update = KEY.encrypt(values, session=bytes(16), round=1, client=22, weight=220)
    return rewrite(reply, update.to_bytes())


def other_declaration(reply: Message) -> Message:
    encoding = Encoding(bound=4.0, max_clients=9, max_weight=500)
    values = np.zeros(2102, np.int64)
    key = SumKey.generate(encoding.parameters)
    return rewrite(reply, key.encrypt(values, session=bytes(16), round=1, client=22, weight=220).to_bytes())


def other_count(reply: Message) -> Message:
    update = KEY.encrypt(np.zeros(3, np.int64), session=bytes(16), round=1, client=22, weight=220)
    return rewrite(reply, update.to_bytes())


def heavier(reply: Message) -> Message:
    reply.content.metric_records["metrics"]["num-examples"] = 221
    return reply


def metric(name: str, value: Any) -> Callable[[Message], Message]:
    def change(reply: Message) -> Message:
        reply.content.metric_records["metrics"][name] = value
        return reply

    return change


def without_metrics(reply: Message) -> Message:
    del reply.content["metrics"]
    return reply


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda reply: rewrite(reply, b"garbage" * 100), "foreign"),
        (lambda reply: rewrite(reply, b""), "truncated"),
        (lambda reply: rewrite(reply, update_bytes(reply)[:-1]), "truncated"),
        (lambda reply: rewrite(reply, update_bytes(reply) + b"\0"), "trailing"),
        (
            lambda reply: rewrite(reply, update_bytes(reply)[:500] + b"!" + update_bytes(reply)[501:]),
            "checksum",
        ),
        (other_run, "session"),
        (other_declaration, "field"),
        (other_count, "number_of_values"),
        (heavier, "weight"),
        (metric("num-examples", 0), "range"),
        (metric("num-examples", float("nan")), "range"),
        (metric("num-examples", [220]), "range"),
        (metric("surprise", 1.0), "contents"),
        (metric("loss", [0.5, 0.5]), "contents"),
        (without_metrics, "contents"),
    ],
)
def test_a_bad_reply_is_refused_and_the_round_goes_on(
    change: Callable[[Message], Message], reason: str
) -> None:
    federation = Federation(tamper=only(22, change))
    assert federation.reasons() == [(22, reason)]
    assert federation.metrics["keywright-refused"] == 1
    assert_average(federation, nodes=(11, 33, 44))


def test_plain_arrays_are_refused() -> None:
    def plain(reply: Message) -> Message:
        reply.content["arrays"] = record()
        return reply

    assert Federation(tamper=only(22, plain)).reasons() == [(22, "kind")]


def stolen(reply: Message) -> Message:
    """Return what node 11 could have sent, sent by node 22."""
    layout = ArrayLayout.of(START)
    name = session(ENCODING, layout, RUN_ID)
    update = KEY.encrypt(np.zeros(2102, np.int64), session=name, round=1, client=11, weight=220)
    return rewrite(reply, update.to_bytes())


def test_a_stolen_update_is_refused() -> None:
    assert Federation(tamper=only(22, stolen)).reasons() == [(22, "client")]


def test_a_replayed_update_is_refused() -> None:
    first: list[bytes] = []

    def replay(reply: Message) -> Message:
        first.append(update_bytes(reply))
        return rewrite(reply, first[0])

    federation = Federation(rounds=3, tamper=only(22, replay))
    assert [(r.round, r.node, getattr(r.error, "code", "")) for r in federation.strategy.refusals] == [
        (2, 22, "round"),
        (3, 22, "round"),
    ]


def test_a_second_reply_of_a_client_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first one counts, whatever the second one contains."""
    once = TamperedGrid.send_and_receive

    def twice(grid: TamperedGrid, messages: Iterable[Message], **options: Any) -> Iterable[Message]:
        replies = list(once(grid, messages, **options))
        (again,) = (reply for reply in replies if reply.metadata.src_node_id == 22)
        return [*replies, again, again]

    monkeypatch.setattr(TamperedGrid, "send_and_receive", twice)
    federation = Federation()
    assert [reason for reason in federation.reasons() if reason[1] == "duplicate"] == [(22, "duplicate")] * 2
    assert federation.metrics["keywright-updates"] == len(NODES)
    assert_average(federation)


def test_an_update_with_altered_claims_spoils_the_sum_and_is_noticed() -> None:
    """An attacker who rewrites the header of a replayed update, including checksums, passes the server's
    check but not the key's."""
    import zlib

    first: list[bytes] = []

    def forge(reply: Message) -> Message:
        first.append(update_bytes(reply))
        data = bytearray(first[0])
        end = 44 + int.from_bytes(data[32:36], "little")
        at = 44 + 4 + 8 + 16
        data[at : at + 4] = len(first).to_bytes(4, "little")
        data[end : end + 4] = zlib.crc32(data[:end]).to_bytes(4, "little")
        data[-4:] = zlib.crc32(data[end + 4 : -4], zlib.crc32(data[:end])).to_bytes(4, "little")
        return rewrite(reply, bytes(data))

    federation = Federation(rounds=2, tamper=only(22, forge), fraction_evaluate=0.0)
    assert federation.reasons() == []
    with pytest.raises(kw.errors.AggregationError) as caught:
        federation.model()
    assert caught.value.code == "undecodable"


def test_too_few_updates_leave_the_model_as_it_was() -> None:
    federation = Federation(tamper=lambda node, reply: reply if node == 11 else None)
    assert not federation.result.train_metrics_clientapp
    with pytest.raises(kw.errors.FormatError, match="the model is the one that it began with"):
        federation.model()
    strategy = EncryptedFedAvg(ENCODING)
    assert strategy.aggregate_train(1, []) == (None, None)


def test_clients_refuse_sums_of_too_few_and_of_other_runs() -> None:
    federation = Federation()
    mod = EncryptionMod(KEY, Encoding(bound=4.0, max_clients=4, max_weight=500, min_clients=3))
    total = federation.result.arrays
    assert decrypt_arrays(total, KEY, mod.encoding).keys() == START.keys()
    lonely = Federation(tamper=lambda node, reply: reply if node in (11, 22) else None).result.arrays
    with pytest.raises(kw.errors.AggregationError) as caught:
        decrypt_arrays(lonely, KEY, mod.encoding)
    assert (caught.value.code, caught.value.found) == ("too_few", 2)
    # Another bound is another session: the client does not train on a model that it would misread.
    wrong = EncryptionMod(KEY, Encoding(bound=8.0, max_clients=4, max_weight=500))
    grid = TamperedGrid({node: app([wrong], train, samples) for node in NODES})
    message = EncryptedFedAvg(ENCODING).configure_train(2, total, ConfigRecord(), grid)
    replies = list(grid.send_and_receive(message))
    assert all("another run or declaration" in str(reply.error.reason) for reply in replies)


def test_more_clients_than_the_modulus_has_room_for_are_an_error() -> None:
    encoding = Encoding(bound=1.0, max_clients=2, max_weight=5, bits=40)
    assert encoding.capacity < 8
    nodes = range(1, encoding.capacity + 2)
    grid = TamperedGrid({node: app([], train, samples) for node in nodes})
    with pytest.raises(kw.errors.ParameterError) as caught:
        EncryptedFedAvg(encoding).start(grid, record(), num_rounds=1)
    assert (caught.value.value, caught.value.maximum) == (encoding.capacity + 1, encoding.capacity)


def test_a_key_of_another_declaration_is_refused() -> None:
    with pytest.raises(kw.errors.ParameterError):
        EncryptionMod(KEY, Encoding(bound=4.0, max_clients=9, max_weight=500))
