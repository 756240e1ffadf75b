"""A client app in forked processes: their updates have no randomness in common."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest
from flwr.app import Array, ArrayRecord, ConfigRecord, Message, RecordDict
from keywright.federated import Encoding, EncryptionMod, SumKey
from keywright.federated.records import UPDATE
from tests.federated.loopback import TamperedGrid, app
from tests.oracle import Object
from tests.processes import in_child

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork"),
    pytest.mark.filterwarnings("ignore:This process"),
]

ENCODING = Encoding(bound=1.0, max_clients=2, max_weight=1)


def keep(arrays: dict[str, Any], _: int) -> dict[str, Any]:
    return arrays


def test_forked_clients_of_one_key() -> None:
    key = SumKey.from_bytes(SumKey.generate(ENCODING.parameters).to_bytes(), ENCODING.parameters)
    grid = TamperedGrid({7: app([EncryptionMod(key, ENCODING)], keep, lambda _: 1)})
    zeros = ArrayRecord({"w": Array(np.zeros(1 << ENCODING.parameters.log_n))})

    def update() -> bytes:
        content = RecordDict({"arrays": zeros, "config": ConfigRecord({"server-round": 1})})
        message = Message(content=content, dst_node_id=7, message_type="train")
        (reply,) = grid.send_and_receive([message])
        assert not reply.has_error(), reply.error
        return reply.content.array_records["arrays"][UPDATE].data

    updates = [Object.read(data) for data in (update(), in_child(update), in_child(update), update())]
    assert len({read.descriptor[-32:] for read in updates}) == len({read.body for read in updates}) == 4
