"""The client of a threshold run: its key share never leaves it."""

import hashlib
import os
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from flwr.app import ArrayRecord, ConfigRecord, Context, Message, MessageType, RecordDict
from flwr.clientapp import ClientApp
from flwr.clientapp.typing import ClientAppCallable

from keywright._copies import Unpicklable
from keywright._core import ThresholdKey, ThresholdParameters, ThresholdParty, ThresholdShare
from keywright.errors import AggregationError, ParameterError
from keywright.federated.array_layout import ArrayLayout
from keywright.federated.client_state import ClientState
from keywright.federated.encoding import Encoding
from keywright.federated.encryption_mod import encode_update
from keywright.federated.records import UPDATE, blob, only_arrays, read_arrays, server_round

from .messages import MAX_NUMBER, Deal, Request, Terms, content, whole
from .protocol import (
    DEAL,
    DECRYPT,
    JOIN,
    KEY_BYTES,
    OPEN,
    Claims,
    Roster,
    mask_key,
    seal,
    threshold_parameters,
    unseal,
)

# Phases of a client's set-up.
JOINED, DEALT, OPENED = "joined", "dealt", "opened"

MAX_STEP = 1 << 16
"""Rounds by which a client may advance. It never returns to an earlier one, so a server that names the
largest number, 2^32 - 1, would end all its rounds by one message. With this bound that takes 2^16 messages,
and the client trains for each; a server that asks one client of a thousand a round is far below it."""


class ThresholdMod(Unpicklable, elsewhere="make it in the module of the ClientApp, which processes import"):
    """A mod for a ClientApp whose server runs `ThresholdFedAvg`: no key is distributed, because the clients
    generate one together.

    Use ``app = ClientApp(mods=[mod])`` and then ``mod.register(app)``, which adds the handlers of the set-up
    and of the joint decryption. The client's state (its exchange key, then its share and the keys of its
    masks) is in Flower's state of the client, or in a folder, on its own machine.

    Thread safety: any number of threads may use one at the same time: messages of one client wait for each
    other.

    Args:
        encoding: the declaration that clients and server share.
        threshold: number of clients that decrypt together. The client refuses a server that asks for another
            number.
        weighted_by_key: metric that holds the number of samples.
        folder: a folder for this client only, in which its share outlives the run. The default is Flower's
            state of the run, which suits simulations only: Flower sends a reply before it stores the state,
            so a client that dies in between forgets its answer. Do not copy the folder, and do not restore it
            from a backup.

    Raises:
        ParameterError: no modulus is large enough for that many updates and bits, whatever the clients and
            values.
    """

    def __init__(
        self,
        encoding: Encoding,
        threshold: int,
        weighted_by_key: str = "num-examples",
        folder: str | os.PathLike[str] | None = None,
    ) -> None:
        threshold_parameters(encoding, threshold, threshold, 1)
        self.encoding = encoding
        self.threshold = threshold
        self.weighted_by_key = weighted_by_key
        self._state = ClientState("threshold", None if folder is None else Path(folder))

    def register(self, app: ClientApp) -> None:
        """Add the handlers of the protocol to an app."""
        for action, handler in (
            (JOIN, self._join),
            (DEAL, self._deal),
            (OPEN, self._open),
            (DECRYPT, self._decrypt),
        ):
            app.query(action)(handler)

    def __call__(self, message: Message, context: Context, call_next: ClientAppCallable) -> Message:
        """Encrypt the outgoing update. The incoming model is plain: the server learns the average, and
        nothing else."""
        if message.metadata.message_type.partition(".")[0] != MessageType.TRAIN:
            return call_next(message, context)
        layout = ArrayLayout.of(read_arrays(only_arrays(message.content)[1]))
        number = server_round(dict(message.content.config_records))
        state = self._take_part(context, number, layout.count)
        reply = call_next(message, context)
        if reply.has_error():
            return reply
        name, record = only_arrays(reply.content)
        metrics = next(iter(reply.content.metric_records.values()), None)
        if metrics is None or self.weighted_by_key not in metrics:
            raise ParameterError(
                f"the reply lacks the metric {self.weighted_by_key!r}", what=self.weighted_by_key
            )
        _, parameters = self._group(state)
        weight = self.encoding.require_weight(metrics[self.weighted_by_key])
        integers = encode_update(self.encoding, layout, record, context.node_id, weight)
        key = ThresholdKey.from_bytes(content(state, "joint"), parameters)
        claims = Claims(content(state, "session"), number, context.node_id, weight, layout.count)
        data = claims.to_bytes() + key.encrypt(integers)
        reply.content[name] = ArrayRecord({UPDATE: blob(UPDATE, data)})
        return reply

    def _take_part(self, context: Context, number: int, count: int) -> dict[str, Any]:
        """Note the round in which the client is asked to train: it will decrypt the sum of this round."""
        whole({"round": number}, "round", 1, MAX_NUMBER)
        with self._state.exclusive(context) as state:
            _require_phase(state, OPENED, context)
            if count != state["count"]:
                raise AggregationError(
                    f"the model has {count} values, but the keys were made for {state['count']}",
                    code="number_of_values",
                    found=count,
                    expected=state["count"],
                )
            asked = whole(state, "asked", 0, MAX_NUMBER)
            if number < asked:
                raise AggregationError(
                    f"round {number} is over, because round {asked} has begun",
                    code="round",
                    found=number,
                    expected=asked,
                )
            if number > asked + MAX_STEP:
                raise AggregationError(
                    f"round {number} is more than {MAX_STEP} after round {asked}, the last of this client, "
                    "and would end all rounds between; number rounds one after the other",
                    code="round",
                    found=number,
                    expected=asked + MAX_STEP,
                )
            if number > asked:
                state |= {"asked": number, "answered": b"", "sets": []}
            return dict(state)

    def _join(self, message: Message, context: Context) -> Message:
        """Start a set-up: an exchange key, and a contribution to the seed. Earlier state is discarded."""
        own = X25519PrivateKey.generate()
        nonce = os.urandom(KEY_BYTES)
        with self._state.exclusive(context, anew=True) as state:
            state |= {"phase": JOINED, "exchange": own.private_bytes_raw(), "nonce": nonce}
        return _reply(message, {"key": own.public_key().public_bytes_raw(), "nonce": nonce})

    def _deal(self, message: Message, context: Context) -> Message:
        """Sample the secret, publish its half of the joint key, deal it out in shares, and discard it. This
        happens once: a second secret would be dealt under the same exchange."""
        config = _config(message)
        with self._state.exclusive(context) as state:
            _require_phase(state, JOINED, context)
            terms = Terms.read(config)
            roster = terms.roster
            own = X25519PrivateKey.from_private_bytes(content(state, "exchange"))
            number = roster.number(context.node_id)
            mine = (own.public_key().public_bytes_raw(), content(state, "nonce"))
            if (roster.keys[number - 1], roster.nonces[number - 1]) != mine:
                raise AggregationError(
                    "the roster has another key of this client", code="client", client=context.node_id
                )
            if terms.threshold != self.threshold:
                raise AggregationError(
                    f"the server's threshold is {terms.threshold}, but this client's is {self.threshold}",
                    code="set_up",
                    found=terms.threshold,
                    expected=self.threshold,
                )
            state |= terms.to_state()
            _, parameters = self._group(state)
            party = ThresholdParty.generate(parameters, roster.seed)
            half = party.public_half()
            shares = [seal(own, roster, number, j, s, half) for j, s in enumerate(party.deal(), start=1)]
            state["phase"] = DEALT
        return _reply(message, {"half": half, "shares": shares})

    def _open(self, message: Message, context: Context) -> Message:
        """Add the shares dealt to this client, compute the joint key from all published halves and the keys
        of the masks from the exchange, and discard the exchange key."""
        config = _config(message)
        with self._state.exclusive(context) as state:
            _require_phase(state, DEALT, context)
            roster, parameters = self._group(state)
            own = X25519PrivateKey.from_private_bytes(content(state, "exchange"))
            number = roster.number(context.node_id)
            parties = range(1, len(roster.nodes) + 1)
            given = Deal.read(config, len(roster.nodes))
            pairs = zip(parties, given.shares, given.halves, strict=True)
            dealt = [unseal(own, roster, i, number, share, half) for i, share, half in pairs]
            masks = [os.urandom(32) if i == number else mask_key(own, roster, number, i) for i in parties]
            share = ThresholdShare.combine(parameters, number, dealt, masks)
            joint = ThresholdKey.combine(parameters, roster.seed, given.halves).to_bytes()
            session = roster.session(joint)
            state |= {"share": share.to_bytes(), "masks": masks, "joint": joint, "session": session}
            state |= {"phase": OPENED, "asked": 0, "answered": b"", "sets": []}
            del state["exchange"], state["nonce"]
        return _reply(message, {"session": session})

    def _decrypt(self, message: Message, context: Context) -> Message:
        """Return this client's part of a decryption. It decrypts one sum per round, in the round in which it
        was last asked to train, and with a limited number of sets of clients. The answer is a function of the
        request, so a repeated request gets the same answer."""
        request = Request.read(_config(message))
        total, number = request.total, request.round
        with self._state.exclusive(context) as state:
            _require_phase(state, OPENED, context)
            roster, parameters = self._group(state)
            self._require_contributors(request.contributors, roster)
            if number != whole(state, "asked", 0, MAX_NUMBER):
                raise AggregationError(
                    f"the sum is from round {number}, but this client last trained in round {state['asked']}",
                    code="round",
                    found=number,
                    expected=state["asked"],
                )
            digest = hashlib.sha256(total).digest()
            if state["answered"] not in (b"", digest):
                raise AggregationError(
                    f"another sum of round {number} was requested; the difference of two sums would "
                    "reveal a client's update",
                    code="round",
                    found=number,
                    expected=number + 1,
                )
            active = sorted(roster.number(node) for node in request.active)
            sets = _list(state, "sets")
            asked = hashlib.sha256(repr(active).encode()).digest()
            if asked not in sets and len(sets) >= ThresholdParameters.MAX_SETS:
                raise AggregationError(
                    f"the sum of round {number} was answered with {len(sets)} sets of clients, the maximum",
                    code="sets",
                    found=len(sets) + 1,
                    expected=ThresholdParameters.MAX_SETS,
                )
            masks = _list(state, "masks")
            share = ThresholdShare.from_bytes(
                content(state, "share"), parameters, roster.number(context.node_id), masks
            )
            partial = share.partial(total, active, session=content(state, "session"), round=number)
            state |= {"answered": digest, "sets": sets if asked in sets else [*sets, asked]}
        return _reply(message, {"partial": partial})

    def _require_contributors(self, contributors: frozenset[int], roster: Roster) -> None:
        if len(contributors) < self.encoding.min_clients or not contributors <= set(roster.nodes):
            raise AggregationError(
                f"the sum has {len(contributors)} known contributors, but {self.encoding.min_clients} are "
                "needed",
                code="too_few",
                found=len(contributors),
                expected=self.encoding.min_clients,
            )

    def _group(self, state: dict[str, Any]) -> tuple[Roster, Any]:
        roster = Roster.of(_list(state, "nodes"), _list(state, "keys"), _list(state, "nonces"))
        parameters = threshold_parameters(
            self.encoding, len(roster.nodes), self.threshold, whole(state, "count", 1, MAX_NUMBER)
        )
        return roster, parameters


def _require_phase(state: dict[str, Any], phase: str, context: Context) -> None:
    """Refuse a message out of order: the steps of a set-up come in order, each once."""
    result = state.get("phase")
    if result == phase:
        return
    if result is None:
        raise AggregationError(
            "this client was not part of the set-up", code="no_share", client=context.node_id
        )
    raise AggregationError(
        f"this client has {result}; it answers this once it has {phase}, and once a set-up",
        code="set_up",
        client=context.node_id,
        found=result,
        expected=phase,
    )


def _config(message: Message) -> ConfigRecord:
    record = message.content.config_records.get("keywright")
    if record is None:
        raise ParameterError("the message has no record `keywright`", what="message")
    return record


def _list(state: dict[str, Any], name: str) -> list[Any]:
    value = state.get(name)
    if not isinstance(value, list):
        raise ParameterError(f"{name} is missing or not a list", what=name)
    return value


def _reply(message: Message, values: dict[str, Any]) -> Message:
    return Message(RecordDict({"keywright": ConfigRecord(values)}), reply_to=message)
