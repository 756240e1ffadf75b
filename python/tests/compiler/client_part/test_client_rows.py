"""Last steps of many samples at once: the same numbers as one by one, wherever rows are said to be apart."""

from unittest.mock import patch

import numpy as np
import onnx.parser
import pytest
from keywright.program.client.last_steps import ClientPart
from keywright.program.client.small_model import SmallModel

COUNT = 7
CLASSIFIER = (
    "l, y = ai.onnx.ml.LinearClassifier"
    " <coefficients: floats = [1.0, 2.0, 3.0, 1.0, 0.5, 2.0], classlabels_ints: ints = [0, 1]> (x)"
)
PROBABILITIES = (
    "l, t = ai.onnx.ml.LinearClassifier"
    " <coefficients: floats = [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0],"
    ' classlabels_ints: ints = [0, 1, 2], post_transform: string = "SOFTMAX"> (x)'
    ' y = ai.onnx.ml.Normalizer <norm: string = "L1"> (t)'
)
VOTES = (
    "y, t = ai.onnx.ml.SVMClassifier <classlabels_ints: ints = [0, 1, 2],"
    " coefficients: floats = [-1.0, 0.0, 0.0, 0.0, -1.0, -1.0], kernel_params: floats = [0.0, 0.0, 0.0],"
    ' kernel_type: string = "LINEAR", post_transform: string = "NONE", rho: floats = [0.1, 0.2, -0.1],'
    " support_vectors: floats = [-1.0, 0.0, 0.0, 0.0, -1.0, 0.0, 0.0, 0.0, -1.0],"
    " vectors_per_class: ints = [2, 1, 0]> (x)"
)
EXTRACTED = (
    "i = ArgMax <axis: int = 1> (x) t = ai.onnx.ml.ArrayFeatureExtractor (c, i)"
    " u = Cast <to: int = 6> (t) y = Reshape (u, f)"
)
MEAN = (
    "t = Neg (x) r = Reshape (x, c) s = Reshape (t, c) u = Concat <axis: int = 0> (r, s, r)"
    " y = ReduceMean <keepdims: int = 0> (u, z)"
)
CASES: dict[str, tuple[str, str, bool]] = {
    # Case: constants, nodes, and whether the rows are apart.
    "pointwise": ("float[3] c = {1, 2, 3}", "y = Mul (x, c)", True),
    "a constant with one row": ("float[1,3] c = {1, 2, 3}", "y = Mul (x, c)", True),
    "a constant of higher rank": ("float[1,1,3] c = {1, 2, 3}", "y = Mul (x, c)", False),
    "a constant over rows": (
        "float[3,1] c = {1, 2, 3}",
        "t = Mul (x, c) y = ReduceSum <keepdims: int = 1> (t)",
        False,
    ),
    "softmax": ("", "y = Softmax <axis: int = 1> (x)", True),
    "softmax of the last": ("", "y = Softmax (x)", True),
    "softmax over rows": ("", "y = Softmax <axis: int = 0> (x)", False),
    "label": (
        "int64[3] c = {7, 8, 9}",
        "i = ArgMax <axis: int = 1, keepdims: int = 0> (x) y = Gather (c, i)",
        True,
    ),
    "text": (
        'string[3] c = {"a", "bb", "c"}',
        "i = ArgMax <axis: int = -1, keepdims: int = 0> (x) y = Gather (c, i)",
        True,
    ),
    "the best row": ("", "i = ArgMax <keepdims: int = 0> (x) y = Unsqueeze (i, z)", False),
    "columns": ("int64[2] c = {2, 0}", "y = Gather <axis: int = 1> (x, c)", True),
    "rows by number": ("int64[1] c = {0}", "y = Gather <axis: int = 0> (x, c)", False),
    "a slice": ("int64[1] a = {1}, int64[1] b = {3}", "y = Slice (x, a, b, a)", True),
    "a slice of rows": ("int64[1] b = {1}", "y = Slice (x, z, b, z)", False),
    "rows as vectors": ("int64[2] c = {-1, 3}", "t = Reshape (x, c) y = Neg (t)", True),
    "rows of any length": ("int64[2] c = {0, -1}", "t = Reshape (x, c) y = Neg (t)", True),
    "one vector": ("int64[2] c = {1, -1}", "y = Reshape (x, c)", False),
    "shares": ("", "t = Abs (x) y = LpNormalization <axis: int = 1, p: int = 1> (t)", True),
    "shares of columns": ("", "y = LpNormalization <axis: int = 0, p: int = 2> (x)", False),
    "a total": ("", "y = ReduceSum <keepdims: int = 1> (x)", False),
    "sums of rows": ("int64[1] c = {1}", "y = ReduceSum <keepdims: int = 0> (x, c)", True),
    "sums of columns": ("", "y = ReduceSum <keepdims: int = 1> (x, z)", False),
    "an axis more": ("int64[1] c = {-1}", "t = Unsqueeze (x, c) y = Squeeze (t, c)", True),
    "a leading axis": ("", "y = Unsqueeze (x, z)", False),
    "side by side": ("", "t = Neg (x) y = Concat <axis: int = 1> (x, t)", True),
    "beside a constant": ("float[1,3] c = {1, 2, 3}", "y = Concat <axis: int = 1> (x, c)", False),
    "its shape": (
        "",
        "s = Shape (x) t = Cast <to: int = 1> (s) p = ReduceProd <keepdims: int = 0> (t) y = Div (x, p)",
        False,
    ),
    "a linear classifier": ("", CLASSIFIER, False),
    "a classifier of scores": (
        "",
        CLASSIFIER.replace("1.0, 2.0, 3.0, 1.0, 0.5, 2.0", "1.0, 0.0, 0.0, 0.0, 0.0, 2.0"),
        True,
    ),
    "probabilities": ("", PROBABILITIES, True),
    "votes": ("", VOTES, True),
    "an extracted label": ("int64[3] c = {7, 8, 9}, int64[1] f = {-1}", EXTRACTED, True),
    "a mean of members": (
        "int64[3] c = {1, -1, 3}",
        "s = Reshape (x, c) t = Neg (s) u = Reshape (t, c) y = ReduceMean <keepdims: int = 0> (u, z)",
        False,
    ),
    "a mean of several": ("int64[3] c = {1, -1, 3}", MEAN, True),
    "a mean of single numbers": (
        "int64[3] c = {1, -1, 1}, int64[1] f = {1}",
        MEAN.replace("(x, c)", "(v, c)").replace("t = Neg (x)", "v = ReduceMax (x, f) t = Neg (v)"),
        False,
    ),
    "a mean of samples": ("int64[3] c = {1, -1, 3}, int64[1] f = {1}", MEAN.replace(", z)", ", f)"), False),
    "labels in one row": (
        "int64[3] c = {7, 8, 9}",
        "i = ArgMax <axis: int = 1> (x) y = ai.onnx.ml.ArrayFeatureExtractor (c, i)",
        False,
    ),
    "a total of labels": (
        "int64[3] c = {7, 8, 9}",
        "i = ArgMax <axis: int = 1> (x) t = ai.onnx.ml.ArrayFeatureExtractor (c, i) y = ReduceSum (t)",
        False,
    ),
    "extracted columns": (
        "int64[2] c = {2, 0}",
        "y = ai.onnx.ml.ArrayFeatureExtractor (x, c)",
        False,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_rows_are_the_same_together_and_one_by_one(name: str) -> None:
    constants, nodes, apart = CASES[name]
    stored = ", ".join(filter(None, ["int64[1] z = {0}", constants]))
    text = f"""<ir_version: 9, opset_import: ["" : 18, "ai.onnx.ml" : 3]>
    client (float[n, 3] x) => (float[n, k] y) <{stored}> {{ {nodes} }}"""
    model = onnx.parser.parse_model(text)
    part = ClientPart(model.SerializeToString(), (1, 3))
    scores = np.random.default_rng(1).normal(size=(COUNT, 3))
    with patch.object(SmallModel, "run", autospec=True, side_effect=SmallModel.run) as runs:
        together = part.run(scores)["y"]
    assert runs.call_count == 1 + (1 if apart else COUNT)  # the first, of zeros, shows the shapes
    one_by_one = np.concatenate([part.run(row[None])["y"] for row in scores])
    assert together.dtype == one_by_one.dtype
    np.testing.assert_array_equal(together, one_by_one)
