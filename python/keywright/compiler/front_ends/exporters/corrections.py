"""Corrects exported estimators where exporters are known to write another function."""

import json
from typing import Any

import numpy as np
import onnx

from keywright.compiler.front_ends.model_file import CLIENT
from keywright.errors.network import ModelRefusedError, RefusalError


def rename(graph: onnx.GraphProto, old: str, new: str) -> None:
    """Give a value of a graph another name. Its outputs keep theirs."""
    for node in graph.node:
        node.output[:] = [new if each == old else each for each in node.output]
        node.input[:] = [new if each == old else each for each in node.input]


def corrected(model: Any, exported: onnx.ModelProto) -> onnx.ModelProto:
    """Return an exported estimator that computes what the estimator does, where skl2onnx is known not to.

    Of a discriminant analysis of two classes it writes the softmax of -d and d, whose probability is the
    sigmoid of 2 d and not of d; of one against one, the numbers of labels instead of these; of an isotonic
    calibration, the probability of the nearest threshold instead of a straight line between two; of a support
    vector machine of two classes, the scores of libsvm, whose first class is the positive one; of a network
    with several outputs, all of them in one column.
    """
    last = last_step(model)
    kind, graph = type(last).__name__, exported.graph
    if kind in ("NuSVC", "SVC") and len(last.classes_) == 2 and not hasattr(last, "predict_proba"):
        _negate_scores(graph)
    if kind == "CalibratedClassifierCV" and last.method == "isotonic":
        _interpolate(exported)
    if kind == "MLPRegressor" and last.n_outputs_ > 1:
        (shape,) = [each for each in graph.initializer if each.name == graph.node[-1].input[1]]
        shape.CopyFrom(onnx.numpy_helper.from_array(np.asarray([-1, last.n_outputs_]), shape.name))
        graph.output[0].type.tensor_type.shape.dim[1].dim_value = last.n_outputs_
    if kind in ("GammaRegressor", "PoissonRegressor", "TweedieRegressor"):
        # The client computes the exponential, so that no mean is below 0; its argument says as much.
        means = [node.output[0] for node in graph.node if node.op_type == "Exp"]
        onnx.helper.set_model_props(exported, {CLIENT: json.dumps(means)})
    if kind == "LinearDiscriminantAnalysis" and len(last.classes_) == 2:
        for node in graph.node:
            if node.op_type == "LinearClassifier":
                for attribute in node.attribute:
                    if attribute.name in ("coefficients", "intercepts"):
                        attribute.floats[:] = [value / 2 for value in attribute.floats]
    if kind == "OneVsOneClassifier":
        name, classes = graph.output[0].name, np.asarray(last.classes_)
        rename(graph, name, f"{name}/numbers")
        strings = classes.dtype.kind in "OSU"
        values = classes.astype(object) if strings else classes.astype(np.int64)
        graph.initializer.append(onnx.numpy_helper.from_array(values, f"{name}/labels"))
        flat = onnx.numpy_helper.from_array(np.asarray([-1], np.int64), f"{name}/shape")
        graph.initializer.append(flat)
        graph.node.extend(
            [
                onnx.helper.make_node("Reshape", [f"{name}/numbers", flat.name], [f"{name}/flat"]),
                onnx.helper.make_node("Gather", [f"{name}/labels", f"{name}/flat"], [name]),
            ]
        )
        del graph.output[0].type.tensor_type.shape.dim[1:]
        elements = onnx.TensorProto.STRING if strings else onnx.TensorProto.INT64
        graph.output[0].type.tensor_type.elem_type = elements
    return exported


def _negate_scores(graph: onnx.GraphProto) -> None:
    """Negate the scores of a support vector machine."""
    nodes = list(graph.node)
    (place,) = [index for index, node in enumerate(nodes) if node.op_type == "SVMClassifier"]
    scores = nodes[place].output[1]
    nodes[place].output[1] = f"{scores}/libsvm"
    nodes.insert(place + 1, onnx.helper.make_node("Neg", [f"{scores}/libsvm"], [scores], f"{scores}/sign"))
    del graph.node[:]
    graph.node.extend(nodes)


def with_threshold(model: Any, exported: onnx.ModelProto) -> onnx.ModelProto:
    """Return an exported classifier whose label follows from a threshold of a probability.

    Raises:
        ModelRefusedError: the threshold is of a decision function.
    """
    scored = model.response_method == "decision_function"
    if scored or not hasattr(model.estimator_, "predict_proba"):
        kind = type(model).__qualname__
        text = f"the threshold of {kind} is of a decision function; compile its estimator_, and compare there"
        raise ModelRefusedError([RefusalError(text, code="export", model=kind)])
    scorer = getattr(model, "_curve_scorer", None)
    positive = model.pos_label if scorer is None else scorer._get_pos_label()
    threshold = getattr(model, "best_threshold_", getattr(model, "threshold", "auto"))
    classes = np.asarray(model.classes_)
    place = 1 if positive is None else int(np.flatnonzero(classes == positive)[0])
    graph = exported.graph
    maps = {node.output[0]: node.input[0] for node in graph.node if node.op_type == "ZipMap"}
    label, shares = graph.output[0], maps.get(graph.output[1].name, graph.output[1].name)
    rename(graph, label.name, f"{label.name}/other")
    strings, make = classes.dtype.kind in "OSU", onnx.helper.make_node
    ordered = classes[[1 - place, place]]
    constants = {
        "place": np.asarray(place, np.int64),
        "least": np.asarray(0.5 if threshold == "auto" else threshold, np.float64),
        "labels": ordered.astype(object) if strings else ordered.astype(np.int64),
    }
    graph.initializer.extend(
        onnx.numpy_helper.from_array(each, f"threshold/{name}") for name, each in constants.items()
    )
    last: list[tuple[str, list[str], str, dict[str, Any]]] = [
        ("Gather", [shares, "threshold/place"], "threshold/share", {"axis": 1}),
        ("Cast", ["threshold/share"], "threshold/double", {"to": onnx.TensorProto.DOUBLE}),
        ("GreaterOrEqual", ["threshold/double", "threshold/least"], "threshold/above", {}),
        ("Cast", ["threshold/above"], "threshold/number", {"to": onnx.TensorProto.INT64}),
        ("Gather", ["threshold/labels", "threshold/number"], label.name, {"axis": 0}),
    ]
    graph.node.extend(make(kind, inputs, [result], result, **more) for kind, inputs, result, more in last)
    return exported


def _interpolate(exported: onnx.ModelProto) -> None:
    """Replace the look-up of the nearest threshold of each isotonic calibration by straight pieces."""
    graph, client = exported.graph, list[str]()
    arrays = {each.name: onnx.numpy_helper.to_array(each).ravel() for each in graph.initializer}
    source = {node.output[0]: node for node in graph.node}
    nodes: list[onnx.NodeProto] = []
    for node in graph.node:
        nearest = source.get(node.input[1]) if node.op_type == "ArrayFeatureExtractor" else None
        if nearest is None or nearest.op_type != "ArgMin":
            nodes.append(node)
            continue
        distance = source[source[nearest.input[0]].input[0]]
        score, places, values = distance.input[0], arrays[distance.input[1]], arrays[node.input[0]]
        name, width = node.output[0], np.diff(places)
        parts = {
            "low": places[None, :-1],
            "width": width[None],
            "none": np.zeros((), places.dtype),
            "all": np.ones((), places.dtype),
            "rise": np.diff(values)[None].astype(places.dtype),
            "columns": np.ones(1, np.int64),
            "first": values[:1].astype(places.dtype),
        }
        graph.initializer.extend(
            onnx.numpy_helper.from_array(each, f"{name}/{part}") for part, each in parts.items()
        )
        steps = [
            ("Sub", score, "above", "low"),
            ("Div", "above", "share", "width"),
            ("Clip", "share", "inside", "none", "all"),
            ("Mul", "inside", "risen", "rise"),
            ("ReduceSum", "risen", "sum", "columns"),
            ("Add", "sum", "", "first"),
        ]
        for operator, first, result, *others in steps:
            inputs = [score if first is score else f"{name}/{first}", *(f"{name}/{each}" for each in others)]
            output = f"{name}/{result}" if result else name
            nodes.append(onnx.helper.make_node(operator, inputs, [output], output))
        client.append(f"{name}/above")
    used = {each for node in nodes for each in node.input} | {each.name for each in graph.output}
    while unused := [node for node in nodes if used.isdisjoint(node.output)]:
        nodes = [node for node in nodes if node not in unused]
        used = {each for node in nodes for each in node.input} | {each.name for each in graph.output}
    del graph.node[:]
    graph.node.extend(nodes)
    onnx.helper.set_model_props(exported, {CLIENT: json.dumps(client)})


def last_step(model: Any) -> Any:
    """Return the last step of a pipeline; another estimator itself."""
    return model.steps[-1][1] if getattr(model, "steps", None) else model
