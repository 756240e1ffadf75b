"""Rounds with Flower's own components and real messages: the mods of clients, the strategies of servers.

A client's time is that of its app, from the bytes of a message to the bytes of the reply; the update exists
already, so there is no training. The server's is the rest. The model that a round begins with is the result
of the round before, as in a run.
"""

from __future__ import annotations

import logging
import random
from abc import abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, Context, Message, MetricRecord, RecordDict
from flwr.client import NumPyClient
from flwr.client.mod import secaggplus_mod
from flwr.clientapp import ClientApp
from flwr.common import ndarrays_to_parameters, parameters_to_ndarrays
from flwr.compat.common.recorddict_compat import arrayrecord_to_parameters, parameters_to_arrayrecord
from flwr.server.client_manager import SimpleClientManager
from flwr.server.compat.grid_client_proxy import GridClientProxy
from flwr.server.compat.legacy_context import LegacyContext
from flwr.server.strategy import FedAvg as LegacyFedAvg
from flwr.server.workflow import SecAggPlusWorkflow
from flwr.server.workflow.constant import MAIN_CONFIGS_RECORD, MAIN_PARAMS_RECORD
from flwr.server.workflow.constant import Key as WorkflowKey
from flwr.serverapp.strategy import FedAvg
from harness.measurement.clock import Seconds, timed
from keywright.federated import (
    Encoding,
    EncryptedFedAvg,
    EncryptionMod,
    SumKey,
    ThresholdFedAvg,
    ThresholdMod,
    decrypt_arrays,
)
from keywright.federated.loopback import RUN_ID
from numpy.typing import NDArray

from studies.federated_averaging.grid import Exchange, MeasuredGrid, Step, exchanges, whole
from studies.federated_averaging.updates import CLIENTS, Model
from studies.federated_averaging.ways import BOUND, WEIGHT, Round, check, flat

BITS = 28
"""Of a value, in the threshold scheme and in SecAgg+: the most for which sums of 15 fit SecAgg+'s modulus."""
CARRIES_UPDATE = ("train", "collect_masked_vectors")
SINGLE = 2.0**-24
"""What one rounding to float32 changes, relatively."""


def quorum(clients: int) -> int:
    """How many of the clients of a round open its sum: two thirds."""
    return max(2, 2 * clients // 3)


def close(updates: list[Model], roundings: int) -> float:
    """What so many roundings to float32 change a value of the updates."""
    return roundings * SINGLE * float(max(np.abs(flat(update)).max() for update in updates))


class Federation:
    """A way of averaging that runs in Flower. One number of clients sends updates, in every round the same.

    Attributes:
        setup: exchanges before the first round.
        setup_server: what the server does between them.
    """

    name: str
    extrapolated = False

    def __init__(self) -> None:
        self.grid: MeasuredGrid
        self.setup: list[Exchange] = []
        self.setup_server = Seconds(0, 0)
        self.number = 0
        self.pending: Iterator[Model] = iter(())

    @abstractmethod
    def federate(self, updates: list[Model]) -> Seconds:
        """A round; what server and clients take together."""

    @abstractmethod
    def average(self) -> NDArray[np.float64]:
        """The values of the average."""

    @abstractmethod
    def allowed(self, updates: list[Model]) -> float:
        """How far the average may be off."""

    def round(self, updates: list[Model]) -> Round:
        """One round: every client asked takes the next update."""
        self.number += 1
        self.pending = iter(updates)
        self.grid.steps = []
        total = self.federate(updates)
        check(self.name, self.average(), [flat(update) for update in updates], self.allowed(updates))
        steps = self.grid.steps
        last = max(i for i, step in enumerate(steps) if step.exchange in CARRIES_UPDATE)
        before, after = steps[: last + 1], steps[last + 1 :]
        sending, opening = whole(before), whole(after) if after else None
        nodes = dict.fromkeys(step.node for step in before)
        return Round(
            client=[spent([step for step in before if step.node == node]) for node in nodes],
            server=less(total, steps),
            open=Seconds(opening.wall_s, opening.cpu_s) if opening else Seconds(0, 0),
            update_bytes=sending.up_bytes,
            sum_bytes=opening.up_bytes + opening.down_bytes if opening else sending.down_bytes,
            exchanges=[*exchanges(steps), whole(steps)],
        )


def spent(steps: list[Step]) -> Seconds:
    """Of some messages, together."""
    return Seconds(sum(step.seconds.wall for step in steps), sum(step.seconds.cpu for step in steps))


def less(total: Seconds, steps: list[Step]) -> Seconds:
    """The server's: what the clients did not take."""
    clients = spent(steps)
    return Seconds(total.wall - clients.wall, total.cpu - clients.cpu)


class Strategy(Federation):
    """A strategy of Flower's present interface, and mods."""

    def __init__(self, strategy: FedAvg, mods: list[Any], nodes: int) -> None:
        super().__init__()
        self.strategy = strategy
        self.grid = MeasuredGrid({node: self._app(mods) for node in range(1, nodes + 1)})
        self.model = ArrayRecord()

    def _app(self, mods: list[Any]) -> ClientApp:
        app = ClientApp(mods=mods)

        @app.train()
        def _train(message: Message, context: Context) -> Message:
            for array in message.content.array_records["arrays"].values():
                array.numpy()
            arrays = ArrayRecord({name: Array(value) for name, value in next(self.pending).items()})
            metrics = MetricRecord({"num-examples": WEIGHT})
            return Message(RecordDict({"arrays": arrays, "metrics": metrics}), reply_to=message)

        for mod in mods:
            if isinstance(mod, ThresholdMod):
                mod.register(app)
        return app

    def federate(self, updates: list[Model]) -> Seconds:
        """What `strategy.start` does in a round, without evaluation."""
        if not self.model:
            self.model = ArrayRecord({name: Array(np.zeros_like(v)) for name, v in updates[0].items()})
        messages, configured = timed(
            lambda: list(self.strategy.configure_train(self.number, self.model, ConfigRecord(), self.grid))
        )
        if self.number == 1 and self.grid.steps:
            steps = self.grid.steps
            self.setup, self.setup_server = [*exchanges(steps), whole(steps)], less(configured, steps)
            self.grid.steps, configured = [], Seconds(0, 0)
        (arrays, _), aggregated = timed(
            lambda: self.strategy.aggregate_train(self.number, self.grid.send_and_receive(messages))
        )
        if arrays is None:
            raise SystemExit(f"{self.name}: round {self.number} has no average")
        self.model = arrays
        return Seconds(configured.wall + aggregated.wall, configured.cpu + aggregated.cpu)

    def average(self) -> NDArray[np.float64]:
        return flat({name: array.numpy() for name, array in self.model.items()})


class FlowerPlain(Strategy):
    """FedAvg without encryption."""

    name = "Flower: plain FedAvg"

    def __init__(self, clients: int) -> None:
        super().__init__(FedAvg(min_train_nodes=clients, min_available_nodes=clients), [], clients)

    def allowed(self, updates: list[Model]) -> float:
        """The weight, a product and a sum are rounded for every update."""
        return close(updates, 3 * len(updates))


class FlowerShared(Strategy):
    """Keywright with one key of all clients, at the default precision. The model that comes in is the sum of
    the last round, which a client opens in the same exchange."""

    name = "Flower: Keywright, shared key"

    def __init__(self, clients: int) -> None:
        self.encoding = Encoding(bound=BOUND, max_clients=max(clients, 2), max_weight=WEIGHT)
        self.key = SumKey.generate(self.encoding.parameters)
        strategy = EncryptedFedAvg(self.encoding, min_train_nodes=clients, min_available_nodes=clients)
        super().__init__(strategy, [EncryptionMod(self.key, self.encoding)], clients)

    def average(self) -> NDArray[np.float64]:
        return flat(decrypt_arrays(self.model, self.key, self.encoding))

    def allowed(self, updates: list[Model]) -> float:
        """The result is stored in float32."""
        return self.encoding.error_bound(len(updates), len(updates) * WEIGHT) + close(updates, 1)


class FlowerThreshold(Strategy):
    """Keywright without a shared key: 30 clients make the key, of those of a round two thirds decrypt."""

    name = f"Flower: Keywright, threshold, {BITS} bits"

    def __init__(self, clients: int) -> None:
        few = quorum(clients)
        self.encoding = Encoding(bound=BOUND, max_clients=max(clients, 2), max_weight=WEIGHT, bits=BITS)
        strategy = ThresholdFedAvg(
            self.encoding,
            few,
            fraction_train=clients / CLIENTS,
            min_train_nodes=clients,
            min_available_nodes=CLIENTS,
        )
        super().__init__(strategy, [ThresholdMod(self.encoding, few)], CLIENTS)

    def allowed(self, updates: list[Model]) -> float:
        """The result is stored in float32."""
        return self.encoding.error_bound(len(updates), len(updates) * WEIGHT) + close(updates, 1)


class FlowerSecAgg(Federation):
    """Flower's SecAgg+. Values are clipped to the same bound, and rounded up or down at random to 28 bits;
    the modulus is the default.

    Args:
        clients: of a round.
        shares: with how many clients, itself among them, each one masks its update and shares its keys. Two
            thirds of them unmask.
    """

    MODULUS = 2**32

    def __init__(self, clients: int, shares: int) -> None:
        super().__init__()
        few, nodes = quorum(shares), range(1, clients + 1)
        self.name = f"Flower: SecAgg+, {'all' if shares == clients else shares} share, {BITS} bits"
        if clients * 2**BITS >= self.MODULUS:
            raise SystemExit(f"sums of {clients} values of {BITS} bits are too large for SecAgg+'s modulus")

        def client(_context: Context) -> Any:
            return _Trained(self).to_client()

        apps = {node: ClientApp(client_fn=client, mods=[secaggplus_mod]) for node in nodes}
        self.grid = MeasuredGrid(apps)
        manager = SimpleClientManager()
        for node in nodes:
            manager.register(GridClientProxy(node, self.grid, RUN_ID))
        strategy = LegacyFedAvg(min_fit_clients=clients, min_available_clients=clients)
        context = Context(RUN_ID, 0, {}, RecordDict(), {})
        self.context = LegacyContext(context, strategy=strategy, client_manager=manager)
        self.workflow = SecAggPlusWorkflow(
            shares / clients,
            few,
            max_weight=float(WEIGHT),
            clipping_range=BOUND,
            quantization_range=2**BITS,
            modulus_range=self.MODULUS,
        )

    def federate(self, updates: list[Model]) -> Seconds:
        """What `DefaultWorkflow` does in a round, without evaluation."""
        state = self.context.state
        if self.number == 1:
            zeros = ndarrays_to_parameters([np.zeros_like(v) for v in updates[0].values()])
            state.array_records[MAIN_PARAMS_RECORD] = parameters_to_arrayrecord(zeros, keep_input=True)
        state.config_records[MAIN_CONFIGS_RECORD] = ConfigRecord({WorkflowKey.CURRENT_ROUND: self.number})
        before = state.array_records[MAIN_PARAMS_RECORD]
        _, total = timed(self.workflow, self.grid, self.context)
        if state.array_records[MAIN_PARAMS_RECORD] is before:
            raise SystemExit(f"{self.name}: round {self.number} has no average")
        return total

    def average(self) -> NDArray[np.float64]:
        record = self.context.state.array_records[MAIN_PARAMS_RECORD]
        arrays = parameters_to_ndarrays(arrayrecord_to_parameters(record, keep_input=True))
        return flat({str(number): array for number, array in enumerate(arrays)})

    def allowed(self, updates: list[Model]) -> float:
        """Rounding to either neighbour is less than a step. Before, the bound is added to each value in
        float32, and the sum is at most twice the bound; the weights are equal and the scale is a power of
        two, so the products are exact. Afterwards FedAvg takes the mean of equal averages in double
        precision."""
        step = 2 * BOUND / (1 << BITS)
        return step + 2 * BOUND * SINGLE + 4 * len(updates) * 2.0**-53 * BOUND


class _Trained(NumPyClient):
    """A client that has trained already."""

    def __init__(self, federation: Federation) -> None:
        self.federation = federation

    def fit(self, parameters: Any, config: Any) -> tuple[list[NDArray[Any]], int, dict[str, Any]]:
        return list(next(self.federation.pending).values()), WEIGHT, {}


def quiet() -> None:
    """No lines of Flower between measurements; the same clients in every run."""
    logging.getLogger("flwr").setLevel(logging.ERROR)
    random.seed(1)
