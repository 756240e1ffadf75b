"""One object: compile, report, try, save, load as a client and as a server."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from importlib.resources import files
from pathlib import Path
from typing import Any

import keywright as kw
import numpy as np
import onnx
import pytest
from keywright import compiler
from keywright._progress import Advance, silent
from keywright._reading.sealed import CHECKSUM_BYTES, checked
from keywright._units import format_bytes
from keywright.cli import main
from keywright.compiler.compiler import compile_forms
from keywright.errors import (
    EncodeError,
    FolderError,
    FormatError,
    MismatchError,
    MissingKeyError,
    ModelRefusedError,
    OutOfMemoryError,
    OutOfRangeError,
    ParameterError,
    RefusalError,
)
from keywright.model import Identity, Message, Model, ModelClient, Ring
from keywright.plan.cost.calibration import stored_model
from keywright.plan.keys import plan_file
from keywright.plan.strategies.bootstrap_time import predict_bootstrap
from keywright.runtime import run_clear
from keywright.serve.served.loading import load_served
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from tests.serve.network import INPUTS, make_full, make_thin

Vector = NDArray[np.float64]
DATA = files("keywright") / "data"
SINGLE = 2.0**-18
"""More than single precision loses in sums of 8 products whose terms are below 8."""


def small(insecure: bool = True) -> kw.Parameters:
    """A ring without security, of nine levels."""
    return kw.Parameters.from_bits(11, [50, *[40] * 9], [50, 50], 40, insecure=insecure)


@pytest.fixture(scope="module")
def perceptron() -> onnx.ModelProto:
    """Six inputs, five values through a ReLU, three outputs."""
    rng = np.random.default_rng(3)
    tensors = [
        numpy_helper.from_array(rng.normal(size=shape).astype(np.float32), name)
        for name, shape in (("w0", (6, 5)), ("w1", (5, 3)))
    ]
    nodes = [
        helper.make_node("MatMul", ["x", "w0"], ["h"], "hidden"),
        helper.make_node("Relu", ["h"], ["r"], "relu"),
        helper.make_node("MatMul", ["r", "w1"], ["y"], "outputs"),
    ]
    graph = helper.make_graph(
        nodes,
        "perceptron",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 6])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 3])],
        tensors,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.fixture(scope="module")
def typical() -> Vector:
    return np.random.default_rng(4).uniform(-1, 1, (200, 6))


@pytest.fixture(scope="module")
def model(perceptron: onnx.ModelProto, typical: Vector) -> Model:
    return kw.compile(perceptron, typical, parameters=small(), batch=4)


def reference(model: onnx.ModelProto, samples: Vector) -> Vector:
    """The model's own outputs, by ONNX's reference implementation."""
    from onnx.reference import ReferenceEvaluator

    (outputs,) = ReferenceEvaluator(model).run(None, {"x": samples.astype(np.float32)})
    return np.asarray(outputs, np.float64)


def noise(model: Model, samples: Vector) -> float:
    """Return more than the error of an encrypted run: four times the largest of twenty draws for each output.
    Normal errors do not reach that."""
    return 4 * float(model.simulate(samples, repetitions=20).errors.max())


def fit_error(model: Model, weights: Vector) -> float:
    """Return the maximum change of an output by the polynomial for the only activation, through the next
    layer with these weights, (inputs, outputs)."""
    fit = model.report.fit
    assert fit is not None
    (activation,) = fit.activations
    return activation.max_error * float(np.abs(weights).sum(axis=0).max())


def test_predictions_under_encryption_are_those_of_the_model(
    perceptron: onnx.ModelProto, typical: Vector, model: Model
) -> None:
    samples = typical[:7]
    scores = model.predict(samples)
    assert scores.shape == (7, 3)
    clear = run_clear(model.program, samples)
    worst = noise(model, samples)
    assert 0 < np.abs(scores - clear).max() <= worst
    weights = numpy_helper.to_array(perceptron.graph.initializer[1])
    assert np.abs(clear - reference(perceptron, samples)).max() <= fit_error(model, weights) + SINGLE
    one = model.predict(samples[0])
    assert one.shape == (3,)
    assert np.abs(one - clear[0]).max() <= worst


def test_a_model_in_a_folder_has_a_client_and_a_server(model: Model, typical: Vector, tmp_path: Path) -> None:
    model.save(tmp_path / "model")
    assert not [path for path in (tmp_path / "model").glob("*.kw") if kw.keys.inspect(path)["secret"]]
    client, server = kw.load_client(tmp_path / "model", insecure=True), kw.load_server(tmp_path / "model")
    keys = client.keys()
    assert len(keys) == model.report.sizes.key_bytes
    server.load_keys(keys)
    message = client.encrypt(typical[:6])
    answer = server.run(message)
    # Two batches send twice the bytes that the report states, except for headers.
    assert abs(len(message) / (2 * model.report.sizes.sent_bytes) - 1) < 0.01
    assert abs(len(answer) / (2 * model.report.sizes.returned_bytes) - 1) < 0.01
    clear = run_clear(model.program, typical[:6])
    worst = noise(model, typical[:6])
    assert np.abs(client.decrypt(answer) - clear).max() <= worst
    one = client.decrypt(server.run(client.encrypt(typical[0])))
    assert one.shape == (3,)
    assert np.abs(one - clear[0]).max() <= worst
    # Two ciphertexts, two queries; noise of one bit is more than none.
    flooding = kw.Flooding(bits=1, queries=2)
    flooded = client.decrypt(answer, flooding)
    assert flooding.remaining == 0
    assert worst < np.abs(flooded - clear).max() < 1e6 * worst
    with pytest.raises(kw.errors.NoiseError, match="are used", check=lambda error: error.code == "queries"):
        client.decrypt(answer, flooding)
    with pytest.raises(FolderError, match="exists"):
        model.save(tmp_path / "model")


def test_a_client_is_kept_in_a_folder(model: Model, typical: Vector, tmp_path: Path) -> None:
    first, server = model.client(), model.server()
    server.load_keys(first.keys())
    first.save(tmp_path / "client")
    answer = server.run(first.encrypt(typical[:2]))
    again = kw.load_client(tmp_path / "client", insecure=True)
    assert np.array_equal(again.decrypt(answer), first.decrypt(answer))
    # Another owner's secret key gives nothing, nor does the public key alone.
    model.save(tmp_path / "model")
    with pytest.raises(kw.errors.MismatchError, check=lambda error: error.code == "key"):
        kw.load_client(tmp_path / "model", insecure=True).decrypt(answer)
    (tmp_path / "client" / "secret.kw").unlink()
    friend = kw.load_client(tmp_path / "client", insecure=True)
    from_friend = server.run(friend.encrypt(typical[:2]))
    assert np.abs(first.decrypt(from_friend) - first.decrypt(answer)).max() < 1e-3
    for refused in (lambda: friend.decrypt(answer), friend.keys):
        with pytest.raises(
            MissingKeyError, match="only a public key", check=lambda error: error.code == "client"
        ):
            refused()


def test_keys_of_another_client_are_no_use(model: Model, typical: Vector) -> None:
    client, server = model.client(), model.server()
    with pytest.raises(MissingKeyError, match="load_keys", check=lambda error: error.code == "server"):
        server.run(client.encrypt(typical[0]))
    server.load_keys(model.client().keys())
    with pytest.raises(kw.errors.MismatchError, check=lambda error: error.code == "key"):
        server.run(client.encrypt(typical[0]))


def test_samples_outside_the_ranges_are_refused(model: Model, typical: Vector) -> None:
    client = model.client()
    for guarded in (client.encrypt, model.predict):
        with pytest.raises(OutOfRangeError) as refused:
            guarded(100 * typical[:2])
        assert refused.value.high < abs(refused.value.value)
    with pytest.raises(kw.errors.EncodeError, match="declared magnitude"):
        client.encrypt(100 * typical[:2], force=True)
    # A forced sample leaves a range inside the program, never the magnitude that its ciphertexts declare.
    program = model.program
    largest = np.full((1, *program.input.shape), max(map(abs, program.input.range or (1.0, 1.0))))
    assert client.encrypt(largest, force=True)
    with pytest.raises(EncodeError, check=lambda error: error.code == "samples"):
        client.encrypt(typical[:, :5])


def test_messages_that_are_damaged_are_refused(model: Model, typical: Vector) -> None:
    client, server = model.client(), model.server()
    server.load_keys(client.keys())
    message = client.encrypt(typical[:5])
    for end in (0, 7, 15, 20, 100, len(message) - 1):
        with pytest.raises(FormatError, check=lambda error: error.code in ("message", "checksum")):
            server.run(message[:end])
    for other in (message + b"x", b"KWSAMPL9" + message[8:], b"PK" + message):
        with pytest.raises(FormatError, check=lambda error: error.code in ("message", "checksum")):
            server.run(other)
    many = checked(message[:8], (1 << 30).to_bytes(4, "little"), message[12:-CHECKSUM_BYTES])
    with pytest.raises(FormatError, match="at most", check=lambda error: error.code == "message"):
        server.run(many)
    # Two ciphertexts hold five samples, four at a time: nine would need three.
    nine = checked(message[:8], (9).to_bytes(4, "little"), message[12:-CHECKSUM_BYTES])
    with pytest.raises(
        FormatError, match="2 ciphertexts of 9 samples", check=lambda error: error.code == "message"
    ):
        server.run(nine)
    read = Message.from_bytes(message)
    assert (read.samples, len(read.objects)) == (5, 2)
    assert read.to_bytes() == message
    with pytest.raises(
        FormatError,
        match="expected a ciphertext, got CKKS parameters",
        check=lambda error: error.code == "message",
    ):
        server.run(Message(1, [small().to_bytes()], server.identity).to_bytes())
    for flipped in [*range(80), *range(80, len(message), len(message) // 40)]:
        damaged = bytearray(message)
        damaged[flipped] ^= 64
        with pytest.raises(kw.KeywrightError):
            server.run(bytes(damaged))


def test_compiling_reports_its_progress(perceptron: onnx.ModelProto, typical: Vector) -> None:
    parts: list[str] = []

    def progress(description: str, total: float | None) -> AbstractContextManager[Advance]:
        parts.append(description)
        return silent(description, total)

    kw.compile(perceptron, typical, parameters=small(), batch=4, progress=progress)
    assert [part.partition(" ")[0] for part in parts] == ["reading", "choosing"]


def test_choices_that_contradict_each_other_are_refused(perceptron: onnx.ModelProto, typical: Vector) -> None:
    with pytest.raises(ParameterError, check=lambda error: error.code == "batch") as refused:
        kw.compile(perceptron, typical, parameters=small(), batch=4096)
    assert (refused.value.what, refused.value.value, refused.value.maximum) == ("batch", 4096, 1024)


def test_every_choice_can_be_given(perceptron: onnx.ModelProto, typical: Vector, tmp_path: Path) -> None:
    choices: dict[str, Any] = {
        "activations": {"relu": "chebyshev:7"},
        "ranges": compiler.Ranges(margin=0.5),
        "parameters": Ring(small(), slots=64, levels=6),
        "batch": 2,
    }
    chosen = kw.compile(perceptron, typical, **choices)
    program, fit = chosen.program, chosen.report.fit
    assert (program.slots, program.batch) == (64, 2)
    assert program.input.level <= 6
    assert fit is not None
    assert [entry.method for entry in fit.activations] == ["chebyshev:7"]
    # A plan of its keys, from a file.
    path = tmp_path / "plan.json"
    path.write_text(plan_file.to_json(chosen.execution.plan))
    again = kw.compile(perceptron, typical, **choices).with_plan(path)
    assert again.specs == chosen.specs
    other = kw.compile(perceptron, typical, parameters=small())
    with pytest.raises(kw.errors.MismatchError, check=lambda error: error.code == "plan"):
        other.with_plan(chosen.execution.plan)


def test_as_many_samples_share_ciphertexts_as_is_best(perceptron: onnx.ModelProto, typical: Vector) -> None:
    one = kw.compile(perceptron, typical, parameters=small())
    assert one.program.batch == 1
    scores = one.predict(typical[:16])
    worst = noise(one, typical[:16])
    assert np.abs(scores - run_clear(one.program, typical[:16])).max() <= worst
    assert kw.compile(perceptron, typical, parameters=small(), samples=16).program.batch > 1


def test_each_batch_is_compiled_once(
    perceptron: onnx.ModelProto, typical: Vector, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled: list[int] = []

    def noted(*arguments: Any, **options: Any) -> Iterator[compiler.Program]:
        for program in compile_forms(*arguments, **options):
            compiled.append(program.batch)
            yield program

    monkeypatch.setattr("keywright.model.parameters.parameter_choice.compile_forms", noted)
    one = kw.compile(perceptron, typical, parameters=small())
    assert compiled == [1]
    for count in (1, 1, 16, 9, 16):
        one.predict(typical[:count])
        one.simulate(typical[:count])
    assert len(compiled) == 2
    assert one.for_batch(compiled[1]) is one.for_batch(compiled[1])
    assert len(compiled) == 2
    two = one.for_batch(2)
    assert two.program.batch == 2
    assert two.plan_batches(16)[0] is two
    assert compiled[2:] == [2]


def test_a_model_for_thin_clients_has_both_halves(tmp_path: Path) -> None:
    """As a model for slots has: their ciphertexts enter and leave through a bootstrap."""
    thin = make_thin(batch=4)
    samples = np.random.default_rng(5).uniform(-1, 1, (5, INPUTS))
    clear = run_clear(thin.program, samples)
    outputs = thin.predict(samples)
    assert np.abs(outputs - clear).max() < 1e-3
    assert thin.report.sizes.sent_bytes > thin.report.sizes.returned_bytes / 4
    thin.save(tmp_path / "thin")
    client, server = kw.load_client(tmp_path / "thin", insecure=True), kw.load_server(tmp_path / "thin")
    server.load_keys(client.keys())
    message = client.encrypt(samples)
    assert abs(len(message) / (2 * thin.report.sizes.sent_bytes) - 1) < 0.05
    answer = server.run(message)
    assert len(answer) <= 2 * thin.report.sizes.returned_bytes
    assert np.abs(client.decrypt(answer) - clear).max() < 1e-3
    for guarded in (client.guard, client.encrypt, thin.predict):
        with pytest.raises(OutOfRangeError, match="the model's input"):
            guarded(samples + 1.5)
    with pytest.raises(OutOfRangeError, match="the model's input"):
        client.encrypt(samples + 1.5, force=True)
    with pytest.raises(kw.errors.ParameterError, match="without flooding"):
        client.decrypt(answer, kw.Flooding(bits=1, queries=2))
    client.save(tmp_path / "client")
    again = kw.load_client(tmp_path / "client", insecure=True)
    assert np.array_equal(again.decrypt(answer), client.decrypt(answer))


def test_thin_clients_need_a_bootstrapping(perceptron: onnx.ModelProto, typical: Vector) -> None:
    for choice in (small(), "N14_QP426_S33", "N16_QP1605_L10_S40"):  # the last one's slots are complex
        with pytest.raises(
            ParameterError, match="no bootstrapping", check=lambda error: error.code == "arguments"
        ):
            kw.compile(perceptron, typical, client="thin", parameters=choice)


@pytest.mark.parametrize(
    "make",
    [
        make_full,
        lambda: make_full(batch=4),
        make_thin,
        lambda: make_thin(batch=4),
        lambda: make_thin(seed=4, log_n=11),
    ],
    ids=["slots", "slots of a batch", "thin", "thin of a batch", "thin in a larger ring"],
)
@pytest.mark.parametrize("count", [1, 3])
def test_the_report_states_the_bytes_of_the_messages(make: Callable[[], Model], count: int) -> None:
    """Those of one sample, and no more for part of a batch."""
    model = make()
    sizes, traffic = model.report.sizes, model.report.lines["traffic"]
    client, server = model.pair(model.execution)
    server.load_keys(client.keys())
    batch = np.random.default_rng(5).uniform(-1, 1, (min(count, model.program.batch), INPUTS))
    sent = client.encrypt_batch(batch)
    answer = server.run(Message(len(batch), sent, client.identity).to_bytes())
    ((_, returned),) = Message.from_bytes(answer).batches(model.program.batch, 1)
    assert sum(map(len, sent)) == sizes.sent_bytes
    if model.entry is None:
        assert sum(map(len, returned)) == sizes.returned_bytes
        assert "at most" not in traffic
    else:
        assert sizes.returned_bytes / 2 < sum(map(len, returned)) <= sizes.returned_bytes
        assert f"at most {format_bytes(sizes.returned_bytes)} returned" in traffic


def test_the_report_says_how_requests_enter() -> None:
    thin, full = make_thin(), make_full()
    assert thin.report.lines["levels"] == "3 deep, enters through a bootstrap, no bootstraps after it"
    assert full.report.lines["levels"] == "3 deep, no bootstraps"
    assert thin.entry is not None
    entering = predict_bootstrap(thin.entry.plan, stored_model())
    layers = thin.program.seconds
    assert thin.report.run.seconds == pytest.approx(layers + entering)
    assert entering > 0


def test_a_report_predicts_the_time_in_the_memory_of_a_server(model: Model) -> None:
    """Diagonals that do not fit are made at every use."""
    with pytest.raises(OutOfMemoryError) as refusal:
        model.with_server_within(1)
    assert refusal.value.needed is not None
    narrow, wide = (
        model.with_server_within(size).report.run.seconds for size in (refusal.value.needed + 10**6, 1 << 40)
    )
    assert narrow > wide
    again = model.with_server_within(1 << 40).with_plan(model.execution.plan)
    assert again.report.run == model.report.run


def test_the_report_can_be_read(model: Model, tmp_path: Path) -> None:
    """A loaded model has the same lines."""
    text = str(model.report)
    model.save(tmp_path / "m")
    assert kw.load(tmp_path / "m").report.lines.keys() == model.report.lines.keys()
    for part in ("2^11", "4 samples", "sent once", "equal predictions", "compared with the model"):
        assert part in text
    assert model.report.sizes.keys == len(model.specs)
    assert model.report.run.seconds > 0


def test_folders_of_the_command_line_are_read(tmp_path: Path) -> None:
    """Folders of `keywright keygen` and of `keywright compile`, and the reverse."""
    onnx_path = tmp_path / "digits.onnx"
    onnx_path.write_bytes((DATA / "digits.onnx").read_bytes())
    with (DATA / "digits_test.npz").open("rb") as file:
        images = np.load(file)["images"][:2].astype(np.float64)
    keys = tmp_path / "keys"
    assert main(["keygen", str(onnx_path), "--out", str(keys)]) == 0
    for load in (kw.load_server, load_served):
        with pytest.raises(FolderError, match="server folder of keywright keygen") as refused:
            load(keys / "client")
        assert refused.value.code == "secret"
    client, server = kw.load_client(keys / "client"), kw.load_server(keys / "server")
    server.open_keys(keys / "server")
    answer = server.run(client.encrypt(images))
    clear = run_clear(client.program, images)
    assert client.decrypt(answer).argmax(1).tolist() == clear.argmax(1).tolist()
    # Newly made keys work, too.
    server.load_keys(client.keys())
    assert np.abs(client.decrypt(server.run(client.encrypt(images))) - clear).max() < 1e-2
    slots, thin = tmp_path / "slots", tmp_path / "thin"
    assert main(["compile", str(onnx_path), "--out", str(slots)]) == 0
    assert kw.load_server(slots).program.output.shape == kw.load_client(slots).program.output.shape == (10,)
    assert main(["compile", str(onnx_path), "--client", "thin", "--out", str(thin)]) == 0
    assert kw.load(slots).entry is None
    assert kw.load(thin).entry is not None
    for loading in (kw.load_client, kw.load_server):
        with pytest.raises(FolderError, match="lacks"):
            loading(tmp_path)


def test_derived_keys_go_both_ways(tmp_path: Path) -> None:
    """A plan with master keys: the client sends fewer bytes, and the server derives the others."""
    onnx_path, plan = tmp_path / "digits.onnx", tmp_path / "plan.json"
    onnx_path.write_bytes((DATA / "digits.onnx").read_bytes())
    arguments = ["--preset", "N15_QP830_S45", "--time", "1.2x", "--hops", "1", "--derived"]
    assert main(["plan", str(onnx_path), *arguments, "--out", str(plan), "--json"]) == 0
    model = kw.compile(onnx_path, parameters="N15_QP830_S45").with_plan(plan)
    assert model.execution.plan.masters is not None
    client, server = model.client(), model.server()
    with pytest.raises(
        kw.errors.MismatchError, match="master keys", check=lambda error: error.code == "plan"
    ):
        server.load_keys(client.keys())
    server.load_keys(client.keys(), client.master_keys())
    image = np.zeros((1, 8, 8))
    clear = run_clear(model.program, image)
    worst = noise(model, image)
    assert np.abs(client.decrypt(server.run(client.encrypt(image))) - clear).max() <= worst


def test_models_of_other_libraries_need_an_example(typical: Vector) -> None:
    from sklearn.linear_model import LinearRegression

    with pytest.raises(TypeError, match="example"):
        kw.compile(LinearRegression())
    with pytest.raises(TypeError, match="ndarray"):
        kw.compile(typical)


def test_estimators_of_scikit_learn_are_compiled(typical: Vector) -> None:
    """A pipeline with a perceptron, trained here; its own predictions are the reference."""
    from sklearn.neural_network import MLPRegressor
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    targets = typical[:, :2] @ np.array([[1.0, 0.5], [-1.0, 2.0]]) + typical[:, 2:4] ** 2
    network = MLPRegressor(hidden_layer_sizes=(8,), max_iter=3000, random_state=1)
    pipeline = make_pipeline(StandardScaler(), network).fit(typical, targets)
    model = kw.compile(pipeline, typical, parameters=small(), batch=4)
    scores = model.predict(typical[:4])
    bound = fit_error(model, network.coefs_[1]) + noise(model, typical[:4]) + SINGLE
    # The exporter writes the outputs of a sample as a column.
    expected = pipeline.predict(typical[:4]).reshape(scores.shape)
    assert np.abs(scores - expected).max() <= bound


def test_labels_are_what_the_client_makes_of_scores(
    typical: Vector, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from sklearn.linear_model import LogisticRegression

    labels = np.where(typical[:, 0] > 0.2, "up", "down")
    estimator = LogisticRegression().fit(typical, labels)
    model = kw.compile(estimator, typical, parameters=small())
    scores = model.predict(typical[:5])
    assert model.answers(scores)["output_label"].tolist() == estimator.predict(typical[:5]).tolist()
    assert model.client().answers(scores)["output_label"].tolist() == estimator.predict(typical[:5]).tolist()
    # The command line prints them too.
    onnx.save(compiler.to_onnx(estimator, typical), tmp_path / "model.onnx")
    np.save(tmp_path / "x.npy", typical[:5])
    assert main(["infer", str(tmp_path / "model.onnx"), "--input", str(tmp_path / "x.npy"), "--json"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["output_label"] for row in rows[:5]] == estimator.predict(typical[:5]).tolist()


def test_samples_of_one_client_share_ciphertexts_and_no_prediction_is_lost() -> None:
    """A perceptron with ReLU on scikit-learn's breast cancer data, 30-32-16-2, with 128-bit security."""
    from sklearn.datasets import load_breast_cancer
    from sklearn.model_selection import train_test_split
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    X, y = load_breast_cancer(return_X_y=True)
    training, tests, labels, _ = train_test_split(X, y, test_size=143, random_state=1)
    network = MLPClassifier(hidden_layer_sizes=(32, 16), max_iter=2000, random_state=1)
    pipeline = make_pipeline(StandardScaler(), network).fit(training, labels)
    model = kw.compile(pipeline, training, samples=len(tests), accuracy=0.99)
    assert not model.parameters.insecure
    assert model.program.batch >= len(tests)
    assert model.report.sizes.sent_bytes + model.report.sizes.returned_bytes < 4 << 20
    answers = model.answers(model.predict(tests))
    assert answers["output_label"].tolist() == pipeline.predict(tests).tolist()


def test_a_retrained_model_is_told_from_an_old_client(
    perceptron: onnx.ModelProto, typical: Vector, tmp_path: Path
) -> None:
    """Same parameters, keys and shapes, other weights: without identities the answers would just be wrong."""
    retrained = onnx.ModelProto()
    retrained.CopyFrom(perceptron)
    weights = 2 * numpy_helper.to_array(retrained.graph.initializer[1])
    retrained.graph.initializer[1].CopyFrom(numpy_helper.from_array(weights, "w1"))
    options: dict[str, Any] = {
        "parameters": small(),
        "batch": 4,
        "activations": {"relu": "chebyshev:7"},
    }
    old, new = (kw.compile(each, typical, **options) for each in (perceptron, retrained))
    old.save(tmp_path / "old")
    new.save(tmp_path / "new")
    client, server = kw.load_client(tmp_path / "old", insecure=True), kw.load_server(tmp_path / "new")
    server.load_keys(client.keys())
    with pytest.raises(
        MismatchError,
        match="the client's is older; give the client",
        check=lambda error: error.code == "program",
    ) as caught:
        server.run(client.encrypt(typical[:3]))
    assert caught.value.older == "client"
    assert caught.value.found == client.identity.program.hex()
    other = kw.load_server(tmp_path / "old")
    other.load_keys(client.keys())
    answer = other.run(client.encrypt(typical[:3]))
    assert np.abs(client.decrypt(answer) - run_clear(old.program, typical[:3])).max() < 1e-3
    stale = ModelClient(new, secret=client._secret)
    with pytest.raises(
        MismatchError, match="the server's is older", check=lambda error: error.code == "program"
    ):
        stale.decrypt(answer)
    unknown = Message.from_bytes(answer)
    nameless = Message(unknown.samples, unknown.objects, Identity(bytes(32)))
    with pytest.raises(
        MismatchError, match="give both the same model", check=lambda error: error.code == "program"
    ):
        client.decrypt(nameless.to_bytes())
    with pytest.raises(FormatError, match="not a message", check=lambda error: error.code == "message"):
        client.decrypt(b"KWSAMPL1" + answer[8:])


def test_a_program_compiled_twice_is_one_program(perceptron: onnx.ModelProto, typical: Vector) -> None:
    options: dict[str, Any] = {"parameters": small(), "activations": {"relu": "chebyshev:7"}}
    one, two = (kw.compile(perceptron, typical, **options) for _ in range(2))
    assert one.client().identity.program == two.client().identity.program
    assert 0 < one.program.created <= two.program.created


def test_errors_of_encryption_are_warned_of_and_refused(perceptron: onnx.ModelProto, typical: Vector) -> None:
    """A scale of 24 bits leaves errors of hundredths; one of 20 bits more than the outputs allow."""
    relu = {"relu": "chebyshev:7"}
    rough = kw.Parameters.from_bits(11, [34, *[24] * 8], [40], 24, insecure=True)
    with pytest.raises(ModelRefusedError, match=r"times its spread.*noise=") as caught:
        kw.compile(perceptron, typical, parameters=rough, activations=relu, noise=1e-6)
    (reason,) = caught.value.exceptions
    assert isinstance(reason, RefusalError)
    assert reason.code == "precision"
    assert reason.details["share"] > reason.details["allowed"] == 1e-6
    allowed = kw.compile(perceptron, typical, parameters=rough, activations=relu, noise=float("inf"))
    assert allowed.encrypted_error is not None
    assert allowed.encrypted_error.share == reason.details["share"]
    assert "encryption" in allowed.report.lines
    labels = allowed.encrypted_error.labels
    assert labels is not None
    assert any("encryption changes" in text for text in allowed.report.warnings) == (
        reason.details["share"] > 0.01 or labels.undecided > 0
    )
