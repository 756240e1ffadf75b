"""The manifest of a served model: all that a client needs to know, without the weights.

It is JSON. The SHA-256 of the bytes as they are sent names the model. The server refuses a client that saw
another manifest. To pin a model, a client pins that hash.
"""

import base64
import binascii
import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from keywright._core import ClientParameters, KeySpec, Parameters, read_key_set_head
from keywright.errors import KeywrightError, SecurityError
from keywright.errors.network import OutOfRangeError, ProgramFormatError
from keywright.errors.service import ManifestError
from keywright.program.client.client_part import ClientPart
from keywright.program.client.first_steps import FirstSteps
from keywright.program.operands.binning import Binning
from keywright.program.operands.normalisation import Normalisation, declared_magnitude

from .demands import Demands, require_message

FORMAT = "keywright-manifest"
VERSION = 4
NORMALISED_VERSION = 5
"""Of manifests with normalised inputs or outputs, which clients of version 4 would not apply."""
BINNED_VERSION = 6
"""Of manifests with a first step, which clients of version 5 would not compute."""
STEPPED_VERSION = 7
"""Of manifests with first steps before that, such as imputing and look-ups."""
VERSIONS = (VERSION, NORMALISED_VERSION, BINNED_VERSION, STEPPED_VERSION)
MAX_BYTES = 96 << 20
"""Maximum size in bytes of a manifest that is read."""

MAX_VALUES = 1 << 24
"""Maximum number of values of a sample or result for which a client allocates memory."""

Packing = Literal["coefficients", "slots"]


@dataclass(frozen=True)
class Places:
    """Positions of the values of samples in the ciphertexts that the samples share.

    Value ``i``, in row-major order, of sample ``b < batch`` is at ``start[i] + b + k * stride`` for every ``k
    < repeat``. Place ``p`` is slot ``p % size`` of ciphertext ``p // size``. A full client encrypts that
    slot. A thin client encrypts the coefficient that the server's bootstrapping moves to that slot.

    Attributes:
        shape: shape of one sample.
        batch: number of samples. Fewer samples are repeated, because unused slots must hold values in the
            model's range.
        ciphertexts: number of ciphertexts.
        size: slots of each.
    """

    shape: tuple[int, ...]
    batch: int
    ciphertexts: int
    size: int
    start: tuple[int, ...]
    repeat: int
    stride: int

    def pack(self, values: NDArray[np.float64], first: int | None = None) -> NDArray[np.float64]:
        """Pack tensors of 1 to ``batch`` samples, (count, *shape), into (ciphertexts, size); other places are
        zero.

        Args:
            first: the first place that these samples use; the others are left to other requests. By default,
                samples are repeated in all places.
        """
        packed = np.zeros(self.ciphertexts * self.size)
        taken = np.arange(self.batch) if first is None else first + np.arange(len(values))
        places = taken[:, None, None] + np.asarray(self.start)[:, None]
        places = places + np.arange(self.repeat) * self.stride
        packed[places] = values.reshape(len(values), -1, 1)[np.arange(len(taken)) % len(values)]
        return packed.reshape(self.ciphertexts, self.size)

    def unpack(self, packed: NDArray[np.float64], count: int, first: int = 0) -> NDArray[np.float64]:
        """Unpack ``count`` samples from place ``first`` on: from (ciphertexts, size) to (count, *shape)."""
        places = first + np.arange(count)[:, None] + np.asarray(self.start)
        values: NDArray[np.float64] = packed.reshape(-1)[places].reshape(count, *self.shape)
        return values

    @staticmethod
    def read(value: object, what: str) -> "Places":
        """Read places from JSON and check every number.

        Raises:
            ManifestError: the numbers are inconsistent.
        """
        entry = _object(value, what)
        shape = tuple(
            _number(extent, f"{what}.shape", 1, MAX_VALUES) for extent in _list(entry, "shape", what)
        )
        count = 1
        for extent in shape:
            count = min(count * extent, MAX_VALUES + 1)
        ciphertexts = _number(entry.get("ciphertexts"), f"{what}.ciphertexts", 1, 1 << 10)
        size = _number(entry.get("size"), f"{what}.size", 1, min(1 << 17, MAX_VALUES // ciphertexts))
        repeat = _number(entry.get("repeat"), f"{what}.repeat", 1, size)
        stride = _number(entry.get("stride"), f"{what}.stride", 1, size)
        batch = _number(entry.get("batch"), f"{what}.batch", 1, size)
        last = ciphertexts * size - batch - (repeat - 1) * stride
        start = tuple(_number(place, f"{what}.start", 0, last) for place in _list(entry, "start", what))
        if len(start) != count:
            raise ManifestError(
                f"{what} has the shape {list(shape)}, which does not match its {len(start)} places"
            )
        return Places(shape, batch, ciphertexts, size, start, repeat, stride)


@dataclass(frozen=True)
class Manifest:
    """The inputs, outputs, parameters and keys of a served model.

    Attributes:
        name: of the model, for people.
        packing: whether values are in coefficients, as a client without a Fourier transform sends them, or in
            slots.
        client: bytes of a thin client's `ClientParameters`; empty for clients that encrypt slots.
        parameters: bytes of `Parameters`.
        key_set: the head of the key set that the server needs, see `keywright.keys.set_head`.
        key_bytes: bytes of that set.
        input, output: places of the values.
        input_level: level of the ciphertexts that clients send.
        output_level: level of the ciphertexts that come back.
        scale: scale at which values are encrypted.
        input_range: (low, high) of the model's inputs; None if unbounded.
        divisor: a power of two that inputs are divided by before encryption; thin clients encrypt values of
            at most 1 in size.
        factor: decrypted numbers are multiplied by it.
        program: SHA-256 of the program, which binds the weights without revealing them.
        labels: labels of the outputs; empty if they have no names.
        client_part: the part of the model behind its outputs, which the client computes; None if there is
            none.
        input_normalisation, output_normalisation: the client normalises inputs by the first and inverts the
            second; None, as always for thin clients, if there is nothing to do.
        input_ring: log2 of the degree of the smaller ring in which clients encrypt; 0 for the largest.
        binning: the client's first step, which turns a sample into the values of ``input``; None if there is
            none, as always for thin clients.
        first_steps: what the client computes before anything else, such as imputing and look-ups; None if
            there are none, as always for thin clients.
    """

    name: str
    packing: Packing
    client: bytes = field(repr=False)
    parameters: bytes = field(repr=False)
    key_set: bytes = field(repr=False)
    key_bytes: int
    input: Places = field(repr=False)
    output: Places = field(repr=False)
    input_level: int
    output_level: int
    scale: int
    input_range: tuple[float, float] | None
    divisor: float
    factor: float
    program: str
    labels: tuple[str, ...] = ()
    client_part: ClientPart | None = field(default=None, repr=False)
    input_normalisation: Normalisation | None = field(default=None, repr=False)
    output_normalisation: Normalisation | None = field(default=None, repr=False)
    input_ring: int = 0
    binning: Binning | None = field(default=None, repr=False)
    first_steps: FirstSteps | None = field(default=None, repr=False)

    @property
    def sample_shape(self) -> tuple[int, ...]:
        """The shape of a sample's features, before they are binned."""
        return self.input.shape if self.binning is None else (self.binning.features,)

    def features(self, samples: Any) -> tuple[NDArray[np.float64], bool]:
        """Return the features of samples, (count, *sample_shape), and whether a single sample was given.

        Args:
            samples: see `FirstSteps.features`; without first steps, an array of features.

        Raises:
            InvalidSamplesError: samples of another shape or kind.
        """
        if self.first_steps is not None:
            return self.first_steps.features(samples)
        values = np.asarray(samples, np.float64)
        single = values.shape == self.sample_shape
        return (values[None] if single else values), single

    def missing(self, samples: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Return which values of samples, (..., *sample_shape), are not numbers that the model takes."""
        wrong: NDArray[np.bool_] = ~np.isfinite(samples)
        return wrong if self.binning is None else wrong & ~self.binning.absent(samples)

    def entering(self, samples: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return samples, (count, *sample_shape), as they are packed."""
        normal, flat = self.input_normalisation, samples.reshape(len(samples), -1)
        flat = flat if self.binning is None else self.binning.apply(flat)
        flat = flat if normal is None else normal.apply(flat)
        return flat.reshape(len(samples), *self.input.shape) / self.divisor

    def leaving(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the outputs, (count, *output.shape), from unpacked values."""
        normal, flat = self.output_normalisation, values.reshape(len(values), -1) * self.factor
        return (flat if normal is None else normal.invert(flat)).reshape(values.shape)

    def require_range(self, samples: NDArray[np.float64]) -> None:
        """Refuse samples outside the range of the inputs.

        Raises:
            OutOfRangeError: names the value furthest outside.
        """
        if self.input_range is None or self.binning is not None:
            return
        low, high = self.input_range
        worst = samples.flat[np.maximum(low - samples, samples - high).argmax()]
        if not low <= worst <= high:
            raise OutOfRangeError("the model's input", float(worst), low, high)

    @property
    def input_magnitude(self) -> float:
        """The magnitude that ciphertexts of inputs declare, after division by the divisor; 1 for thin
        clients."""
        if self.packing == "coefficients":
            return 1.0
        declared = declared_magnitude(self.input_range, self.divisor, self.input_normalisation)
        return declared or Parameters.from_bytes(self.parameters).default_magnitude

    def other_inputs(self, other: "Manifest") -> tuple[str, ...]:
        """Return in words what decides which samples a client refuses, or how many it joins in a request, and
        differs from another manifest."""
        mine, theirs = (
            {
                "packing": each.packing,
                "shape of inputs": each.sample_shape,
                "batch": each.input.batch,
                "input range": each.input_range,
                "normalisation of inputs": (each.divisor, _map(each.input_normalisation)),
                "binning of inputs": each.binning and each.binning.to_json(),
                "first steps": each.first_steps and each.first_steps.in_manifest(),
                "declared magnitude": each.input_magnitude,
                "fixed-point format": _number_format(each.client),
            }
            for each in (self, other)
        )
        return tuple(what for what in mine if mine[what] != theirs[what])

    def answers(self, outputs: ArrayLike) -> dict[str, NDArray[Any]]:
        """Compute the model's own outputs by name, such as labels and probabilities, from decrypted ones.
        This is the client's part of the model. Without a client's part, the decrypted outputs are the model's
        own.

        Args:
            outputs: (count, *output.shape).

        Raises:
            ManifestError: the shape is wrong, or a step of the client's part cannot be run.
        """
        values = np.asarray(outputs, np.float64)
        if values.ndim == 0 or len(values) == 0 or values.shape[1:] != self.output.shape:
            raise ManifestError(f"outputs have shape (count, {self.output.shape}), got {values.shape}")
        try:
            return {} if self.client_part is None else self.client_part.run(values)
        except ProgramFormatError as error:
            raise ManifestError(f"the client's part of the manifest cannot be used: {error}") from error

    @cached_property
    def specs(self) -> list[KeySpec]:
        """The keys that the server needs, each checked against the bound of its own ring.

        Raises:
            ManifestError: the head of the key set cannot be read.
            SecurityError: a key has less than 128 bits of security.
        """
        try:
            return read_key_set_head(self.key_set, _parameters(self.parameters))
        except SecurityError:
            raise
        except KeywrightError as error:
            raise ManifestError(f"the list of keys of the manifest cannot be used: {error}") from error

    @cached_property
    def answer_bytes(self) -> int:
        """Most bytes of an answer."""
        n = 1 << _parameters(self.parameters).log_n
        return self.output.ciphertexts * (2 * n * 8 * (self.output_level + 1) + 8192)

    def require(self, demands: Demands) -> None:
        """Refuse what a client should not make or send, before it has a secret.

        Raises:
            SecurityError: the parameters, or a key, have less than 128 bits of security.
            DemandError: the manifest asks for more than the limits.
            ManifestError: the list of keys cannot be used.
        """
        parameters = _parameters(self.parameters)
        demands.require_secure(parameters)
        demands.require_keys(1, self.key_bytes)
        # Residues of 8 bytes in memory are packed to the bits of their primes in a file.
        bits = min(prime.bit_length() for prime in (*parameters.q, *parameters.p))
        least = sum(spec.bytes for spec in self.specs) * bits // 64
        demands.require_keys(len(self.specs), max(self.key_bytes, least))
        n = 1 << parameters.log_n
        require_message("a request", self.input.ciphertexts * 2 * n * 8 * (self.input_level + 1))
        require_message("an answer", self.answer_bytes)

    @cached_property
    def encoded(self) -> bytes:
        """Return the bytes that are sent."""
        q = _parameters(self.parameters)
        ends = {"input": self.input_normalisation, "output": self.output_normalisation}
        normalised = {
            end: {"offset": each.offset.tolist(), "scale": each.scale.tolist()}
            for end, each in ends.items()
            if each is not None
        }
        version = NORMALISED_VERSION if normalised else VERSION
        entry: dict[str, Any] = {
            "format": FORMAT,
            "version": version if self.binning is None else BINNED_VERSION,
        }
        steps = ("client_part", "input_normalisation", "output_normalisation", "binning", "first_steps")
        if self.first_steps is not None:
            entry |= {"version": STEPPED_VERSION, "first_steps": self.first_steps.in_manifest()}
        plain = asdict(replace(self, **dict.fromkeys(steps)))  # type: ignore[arg-type]
        entry |= {name: value for name, value in plain.items() if name not in steps}
        if self.binning is not None:
            entry["binning"] = self.binning.to_json()
        if normalised:
            entry["normalised"] = normalised
        if not self.input_ring:
            del entry["input_ring"]
        if self.client_part is not None:
            entry["client_part"] = self.client_part.to_json()
        entry["client"] = base64.b64encode(self.client).decode()
        entry["parameters"] = base64.b64encode(self.parameters).decode()
        entry["key_set"] = base64.b64encode(self.key_set).decode()
        entry["scale"] = str(self.scale)
        # A summary of the parameters, for clients that do not parse them.
        entry["log_n"], entry["modulus"], entry["insecure"] = q.log_n, str(q.q[0]), q.insecure
        return json.dumps(entry, allow_nan=False).encode()

    @cached_property
    def hash(self) -> str:
        """Return the SHA-256 of `encoded`, in hexadecimal."""
        return hashlib.sha256(self.encoded).hexdigest()

    @staticmethod
    def read(data: bytes) -> "Manifest":
        """Read a manifest from the bytes of a server and check every number.

        Raises:
            ManifestError: it is malformed, of another version, or contradicts itself.
        """
        if len(data) > MAX_BYTES:
            raise ManifestError(f"the manifest has {len(data)} bytes; at most {MAX_BYTES} are read")
        try:
            entry = _object(json.loads(data), "the manifest")
        except (ValueError, RecursionError) as error:
            raise ManifestError(
                "the manifest is not JSON; is this the address of keywright serve?"
            ) from error
        if entry.get("format") != FORMAT or entry.get("version") not in VERSIONS:
            raise ManifestError(
                f"the manifest has format {entry.get('format')!r:.60}, version {entry.get('version')!r:.20}; "
                f"this release reads {FORMAT}, versions {VERSION} to {STEPPED_VERSION}"
            )
        if entry.get("packing") not in get_args(Packing):
            raise ManifestError(
                f"the packing {entry.get('packing')!r:.60} of values is unknown; this release may be too old"
            )
        parameters_bytes = _bytes(entry, "parameters")
        try:
            parameters = _parameters(parameters_bytes)
        except KeywrightError as error:
            raise ManifestError(f"the parameters of the manifest cannot be used: {error}") from error
        level, output = parameters.max_level, Places.read(entry.get("output"), "output")
        manifest = Manifest(
            name=_string(entry, "name"),
            packing=entry["packing"],
            client=_bytes(entry, "client"),
            parameters=parameters_bytes,
            key_set=_bytes(entry, "key_set"),
            key_bytes=_number(entry.get("key_bytes"), "key_bytes", 0, 1 << 48),
            input=Places.read(entry.get("input"), "input"),
            output=output,
            input_level=_number(entry.get("input_level"), "input_level", 0, level),
            output_level=_number(entry.get("output_level"), "output_level", 0, level),
            scale=_scale(entry),
            input_range=_range(entry),
            divisor=_divisor(entry),
            factor=_real(entry, "factor"),
            program=_string(entry, "program"),
            labels=tuple(
                _string({"label": label}, "label") for label in _list(entry, "labels", "the manifest")
            ),
            client_part=_client_part(entry, len(output.start)),
            input_normalisation=_normalisation(entry, "input"),
            output_normalisation=_normalisation(entry, "output"),
            input_ring=_number(entry.get("input_ring", 0), "input_ring", 0, parameters.log_n - 1),
            binning=_binning(entry),
            first_steps=_first_steps(entry),
        )
        if manifest.first_steps is not None and (
            manifest.first_steps.shape != manifest.sample_shape or manifest.packing == "coefficients"
        ):
            raise ManifestError(
                f"the first steps give features of shape {manifest.first_steps.shape} for a model of "
                f"{manifest.sample_shape}"
            )
        if manifest.binning is not None and (
            manifest.input.shape != (manifest.binning.bits,) or manifest.packing == "coefficients"
        ):
            raise ManifestError(
                f"the first step gives {manifest.binning.bits} bits for an input of {manifest.input.shape}"
            )
        if manifest.input.batch != manifest.output.batch:
            raise ManifestError(
                f"{manifest.input.batch} samples go in and {manifest.output.batch} come out at a time"
            )
        for end, places in (("input", manifest.input), ("output", manifest.output)):
            normal = getattr(manifest, f"{end}_normalisation")
            if normal is not None and len(normal.scale) not in (1, math.prod(places.shape)):
                raise ManifestError(f"the {end}'s normalisation has {len(normal.scale)} elements")
        if manifest.packing == "coefficients":
            low, high = manifest.input_range or (-math.inf, math.inf)
            if not -manifest.divisor <= low < high <= manifest.divisor:
                raise ManifestError(
                    f"inputs from {low} to {high}, divided by {manifest.divisor}, exceed 1 in size"
                )
        most = parameters.max_slots if manifest.packing == "slots" else _capacity(manifest, parameters)
        for places in (manifest.input, manifest.output):
            if places.size > most:
                raise ManifestError(f"{places.size} places exceed the {most} of a ciphertext")
        if manifest.encoded != data:
            raise ManifestError("the manifest contradicts its own parameters")
        return manifest


@lru_cache(maxsize=2)
def _parameters(data: bytes) -> Parameters:
    """Read parameters once: their tables take time."""
    return Parameters.from_bytes(data)


def _capacity(manifest: Manifest, parameters: Parameters) -> int:
    """Check a thin client's parameters and return the number of values in its ciphertext."""
    try:
        client = ClientParameters.from_bytes(manifest.client)
    except KeywrightError as error:
        raise ManifestError(f"the client's parameters of the manifest cannot be used: {error}") from error
    found = (client.log_n, client.modulus, client.scale)
    expected = (parameters.log_n, parameters.q[0], manifest.scale)
    if found != expected:
        raise ManifestError(f"the client's parameters are for {found}, the server's for {expected}")
    if client.maximum < 1 << client.fraction_bits:
        # A sample that passes the check of ranges must never be refused later, when others were sent.
        raise ManifestError(
            f"the client's numbers end at {client.maximum} of 2^-{client.fraction_bits}, and inputs go to 1"
        )
    return client.capacity


def _map(normalisation: Normalisation | None) -> tuple[bytes, bytes] | None:
    return None if normalisation is None else (normalisation.offset.tobytes(), normalisation.scale.tobytes())


def _number_format(client: bytes) -> tuple[int, int] | None:
    """Return the fraction bits and the largest number of a thin client; None for other clients."""
    if not client:
        return None
    parameters = ClientParameters.from_bytes(client)
    return parameters.fraction_bits, parameters.maximum


def _client_part(entry: Mapping[str, Any], size: int) -> ClientPart | None:
    """Read the client's part from a manifest."""
    if "client_part" not in entry:
        return None
    try:
        return ClientPart.read(entry["client_part"], size)
    except ProgramFormatError as error:
        raise ManifestError(f"the client's part of the manifest cannot be used: {error}") from error


def _object(value: object, what: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise ManifestError(f"{what} is not a JSON object")
    return value


def _list(entry: Mapping[str, Any], name: str, what: str) -> list[object]:
    value = entry.get(name)
    if not isinstance(value, list) or len(value) > MAX_VALUES:
        raise ManifestError(f"{what} has no list {name!r} of at most {MAX_VALUES} entries")
    return value


def _number(value: object, what: str, low: int, high: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise ManifestError(f"{what} must be an integer from {low} to {high}, got {value!r:.60}")
    return value


def _real(entry: Mapping[str, Any], name: str) -> float:
    value = entry.get(name)
    if not isinstance(value, float) or not 0.0 < value < float("inf"):
        raise ManifestError(f"{name} must be a finite number above 0, got {value!r:.60}")
    return value


def _range(entry: Mapping[str, Any]) -> tuple[float, float] | None:
    ends = entry.get("input_range")
    if ends is None:
        return None
    if not isinstance(ends, list) or len(ends) != 2 or not all(isinstance(end, float) for end in ends):
        raise ManifestError(f"input_range must be two numbers with a point, got {ends!r:.60}")
    low, high = ends
    if not -math.inf < low < high < math.inf:
        raise ManifestError(f"inputs from {low} to {high}")
    return low, high


def _divisor(entry: Mapping[str, Any]) -> float:
    value = _real(entry, "divisor")
    if math.frexp(value)[0] != 0.5:
        raise ManifestError(f"divisor must be a power of two, got {value}")
    return value


def _normalisation(entry: Mapping[str, Any], end: str) -> Normalisation | None:
    ends = entry.get("normalised", {})
    if not isinstance(ends, dict) or end not in ends:
        return None
    parts = [_object(ends[end], "a normalisation").get(part) for part in ("offset", "scale")]
    for part in parts:
        if not isinstance(part, list) or not all(isinstance(each, float) for each in part):
            raise ManifestError(f"the {end}'s normalisation must be lists of numbers with a point")
    offset, scale = (np.asarray(part, np.float64) for part in parts)
    sound = len(offset) == len(scale) > 0 and np.isfinite([*offset, *scale]).all() and (scale > 0).all()
    if not sound:
        raise ManifestError(f"the {end}'s normalisation has offsets or scales that no value has")
    return Normalisation(offset, scale)


def _binning(entry: Mapping[str, Any]) -> Binning | None:
    if "binning" not in entry:
        return None
    step = _object(entry["binning"], "the first step")
    lists = [_list(step, name, "the first step") for name in ("columns", "edges", "missing")]
    flags = [step.get(name) for name in ("single", "thresholds")]
    if not all(isinstance(flag, bool) for flag in flags) or not all(isinstance(e, float) for e in lists[1]):
        raise ManifestError("the first step has flags that are not true or false, or edges without a point")
    features = _number(step.get("features"), "features", 1, MAX_VALUES)
    columns, missing = (
        np.asarray([_number(each, "a feature", 0, features - 1) for each in found], np.int64)
        for found in (lists[0], lists[2])
    )
    try:
        return Binning(features, columns, np.asarray(lists[1], np.float64), missing, *map(bool, flags))
    except ValueError as error:
        raise ManifestError(f"the first step: {error}") from error


def _first_steps(entry: Mapping[str, Any]) -> FirstSteps | None:
    if "first_steps" not in entry:
        return None
    try:
        return FirstSteps.read(entry["first_steps"])
    except ProgramFormatError as error:
        raise ManifestError(f"the first steps of the manifest cannot be used: {error}") from error


def _string(entry: Mapping[str, Any], name: str) -> str:
    value = entry.get(name)
    if not isinstance(value, str) or len(value) > 200 or not value.isprintable():
        raise ManifestError(f"{name} must be text of at most 200 printable characters")
    return value


def _scale(entry: Mapping[str, Any]) -> int:
    text = _string(entry, "scale")
    if not (text.isascii() and text.isdigit() and len(text) < 20 and int(text) > 0):
        raise ManifestError(f"scale must be an integer above 0 in decimal digits, got {text!r:.60}")
    return int(text)


def _bytes(entry: Mapping[str, Any], name: str) -> bytes:
    try:
        return base64.b64decode(entry.get(name, ""), validate=True)
    except (binascii.Error, TypeError, ValueError) as error:
        raise ManifestError(f"{name} is not base64") from error
