"""The client in C asks an index, by what the index's directory states."""

from __future__ import annotations

import ctypes
import os
import secrets
import sys
from pathlib import Path

import numpy as np
import pytest
from keywright import search
from keywright.search.messages import query_to_bytes, read_answer
from tests.search.cases import rounded, thin_fields, vectors

ROOT = Path(__file__).parents[4]
NAME = {"win32": "keywright_capi.dll", "darwin": "libkeywright_capi.dylib"}
LIBRARY = (
    Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    / "debug"
    / NAME.get(sys.platform, "libkeywright_capi.so")
)
SINK = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(ctypes.c_uint8), ctypes.c_size_t)


class Compact(ctypes.Structure):
    """A `kw_compact`."""

    _fields_ = [("dropped", ctypes.c_uint32 * 2)]


class CClient:
    """The functions of keywright_client.h that a search needs."""

    def __init__(self, parameters: bytes) -> None:
        if not LIBRARY.is_file():
            pytest.skip("cargo test makes the library of the C client")
        self._library, self._client = ctypes.CDLL(str(LIBRARY)), ctypes.c_void_p()
        self._library.kw_last_error.restype = ctypes.c_char_p
        self._call(
            "kw_client_generate",
            parameters,
            ctypes.c_size_t(len(parameters)),
            0,
            None,
            None,
            ctypes.byref(self._client),
        )

    def _call(self, name: str, *arguments: object) -> bytes:
        """Call a function; return what its sink received."""
        received = bytearray()

        def take(_: object, data: object, length: int) -> int:
            received.extend(ctypes.string_at(data, length))  # type: ignore[arg-type]
            return 0

        sink = SINK(take)
        function = getattr(self._library, name)
        code = function(*(sink if argument is SINK else argument for argument in arguments))
        assert code == 0, self._library.kw_last_error()
        return bytes(received)

    def keys(self, parameters: bytes, head: bytes) -> bytes:
        size = ctypes.c_size_t
        return self._call(
            "kw_client_keys",
            self._client,
            parameters,
            size(len(parameters)),
            head,
            size(len(head)),
            None,
            None,
            None,
            SINK,
            None,
        )

    def encrypt(self, integers: np.ndarray) -> bytes:
        numbers = (ctypes.c_int64 * len(integers))(*integers.tolist())
        count = ctypes.c_size_t(len(integers))
        compact = ctypes.byref(Compact())
        return self._call("kw_client_encrypt", self._client, numbers, count, compact, SINK, None)

    def decrypt(self, answer: bytes, count: int) -> np.ndarray:
        numbers = (ctypes.c_int64 * count)()
        length, places = ctypes.c_size_t(len(answer)), ctypes.c_size_t(count)
        self._call("kw_client_decrypt", self._client, answer, length, numbers, places)
        return np.array(numbers, dtype=np.int64)

    def free(self) -> None:
        self._library.kw_client_free(self._client)


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
def test_the_c_client_reads_the_scores_of_rounded_vectors(metric: search.Metric) -> None:
    stored, vector = vectors(300, 6), vectors(1, 6, seed=2)[0]
    index = search.Index.of(stored, metric=metric, thin=True)
    quantisation, stated = index.quantisation, thin_fields(index.directory())
    client = CClient(stated["client"])
    keys = client.keys(stated["parameters"], stated["key_set"])
    integers, factor = quantisation.query(vector)
    data = query_to_bytes(secrets.token_bytes(16), client.encrypt(integers))
    (part,) = read_answer(index.answer(data, keys))
    scores = quantisation.scores(client.decrypt(part.scores, 300), factor)
    client.free()
    np.testing.assert_allclose(scores, rounded(quantisation, stored, vector), rtol=1e-12, atol=1e-12)
