"""The manifest of a served model: all that a client needs to know, without the weights.

It is JSON. The SHA-256 of the bytes as sent names the model; a client pins a model by this hash. The server
refuses a client that saw another manifest.
"""

import base64
import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from keywright._copies import Stated
from keywright._core import ClientParameters, KeySpec, Parameters, read_key_set_head
from keywright._reading.documents import Limits, read_json
from keywright._reading.records import whole
from keywright.errors import KeywrightError, SecurityError
from keywright.errors.choices import require_choice
from keywright.errors.engine import FormatError
from keywright.program.client.last_steps import ClientPart
from keywright.program.file.codecs import (
    codecs_to_json,
    read_divisor,
    read_interval,
    read_list,
    read_normalisation,
    read_steps,
)
from keywright.program.operands.normalisation import Normalisation

from .demands import Demands, require_message
from .input_output import ManifestInput, ManifestOutput, Places

FORMAT = "keywright-manifest"
VERSION = 4
NORMALISED_VERSION = 5
"""Of manifests with normalised inputs or outputs, which clients of version 4 would not apply."""
BINNED_VERSION = 6
"""Of manifests with a first step, which clients of version 5 would not compute."""
STEPPED_VERSION = 7
"""Of manifests with first steps before that, such as imputing and look-ups, or features that are 0 or 1."""
LIMITED_VERSION = 8
"""Of manifests with limits of features, outside of which clients of version 7 would get other answers."""
JOINED_VERSION = 9
"""Of manifests with two parts of samples, which clients of version 8 would put into one."""
MAX_LABEL = 200
"""Characters of a name or label."""
VERSIONS = range(VERSION, JOINED_VERSION + 1)
MAX_BYTES, LIMITS = 16 << 20, Limits(96 << 20, 1 << 20)
"""Maximum size in bytes of manifests that every client reads, and the limits of those with first steps, which
clients of this package alone compute. The positions, offsets and scales of an image of 224 x 224 x 3 have
half a million values; tables of first steps are bytes in base64."""

Packing = Literal["coefficients", "slots"]


@dataclass(frozen=True)
class CiphertextFormat:
    """The format of the ciphertexts that clients send and receive.

    Attributes:
        packing: whether values are in coefficients, as a client without a Fourier transform sends them, or in
            slots.
        parameters: bytes of `Parameters`.
        client: bytes of a thin client's `ClientParameters`; empty for clients that encrypt slots.
        scale: scale at which values are encrypted.
    """

    packing: Packing
    parameters: bytes
    client: bytes
    scale: int

    def __post_init__(self) -> None:
        require_choice("packing", self.packing, get_args(Packing))


@dataclass(frozen=True)
class KeyList:
    """The keys that a server needs.

    Attributes:
        head: the head of the key set, see `keywright.keys.set_head`.
        size: bytes of that set.
    """

    head: bytes = b""
    size: int = 0


@dataclass(frozen=True)
class Manifest(Stated):
    """The inputs, outputs, parameters and keys of a served model.

    Attributes:
        name: of the model, for people.
        program: SHA-256 of the program, which binds the weights without revealing them.
        format: packing, parameters and scale of the ciphertexts.
        keys: the keys that the server needs.
        input, output: the values that clients encrypt and decrypt.
    """

    name: str
    program: str
    format: CiphertextFormat = field(repr=False)
    keys: KeyList = field(repr=False)
    input: ManifestInput = field(repr=False)
    output: ManifestOutput = field(repr=False)

    @property
    def sample_shape(self) -> tuple[int, ...]:
        """The shape of a sample's features, before they are binned."""
        return self.input.shape

    def features(self, samples: Any) -> tuple[NDArray[np.float64], bool]:
        """Return the features of samples, (count, *sample_shape), and whether a single sample was given.

        Args:
            samples: see `FirstSteps.features`; without first steps, an array of features, or a table if the
                model knows the names of its columns.

        Raises:
            EncodeError: samples of another shape or kind.
        """
        return self.input.steps.read(samples, self.sample_shape)

    def require_range(self, samples: NDArray[np.float64], *, joint: bool = True) -> None:
        """Refuse samples outside the range of the inputs or of all of them together, and values other than 0
        and 1 where the program needs these.

        Args:
            joint: whether the range of all of them together is checked; clients with the program know more.

        Raises:
            OutOfRangeError: names the value furthest outside, or states the distance.
        """
        features = samples.reshape(-1, *self.sample_shape)
        self.input.require_range(features, joint=joint, magnitude=self.input_magnitude)

    @property
    def parameters(self) -> Parameters:
        """The server's, also if their security is not checked: `Demands` refuses such a server."""
        return _parameters(self.format.parameters)

    @property
    def input_magnitude(self) -> float:
        """The magnitude that ciphertexts of inputs declare, after division by the divisor; 1 for thin
        clients."""
        if self.format.packing == "coefficients":
            return 1.0
        return self.input.magnitude or self.parameters.default_magnitude

    def differences(self, other: "Manifest") -> tuple[str, ...]:
        """Describe the differences from another manifest that decide which samples a client refuses, how many
        it joins in a request, or what results mean."""
        mine, theirs = (
            {
                "packing": each.format.packing,
                "parameters": each.format.parameters,
                "scale": each.format.scale,
                "level of inputs": (each.input.level, each.input.log_n),
                "places of inputs": each.input.places,
                "shape of inputs": each.sample_shape,
                "batch": each.input.places.batch,
                "input range": each.input.range,
                "normalisation of inputs": (each.input.scale, _map(each.input.normalisation)),
                "binning of inputs": each.input.steps.binning and each.input.steps.binning.to_json(),
                "features of 0 or 1": each.input.steps.bits,
                "joint range": each.input.steps.joint and each.input.steps.joint.to_json(),
                "names of columns": each.input.steps.columns,
                "first steps": each.input.steps.first and each.input.steps.first.to_json(),
                "declared magnitude": each.input_magnitude,
                "fixed-point format": _number_format(each.format.client),
                "shape of outputs": each.output.places.shape,
                "labels": each.output.labels,
                "last steps": each.output.client_part and each.output.client_part.to_json(),
            }
            for each in (self, other)
        )
        return tuple(what for what in mine if mine[what] != theirs[what])

    def answers(self, outputs: ArrayLike) -> dict[str, NDArray[Any]]:
        """Compute the model's own outputs by name, such as labels and probabilities, from decrypted ones.
        This is the client's part of the model. The dictionary is empty for a model without such a part: its
        decrypted results are the model's output.

        Args:
            outputs: (count, *output.shape).

        Raises:
            EncodeError: the shape is wrong, or they are no real numbers.
            FormatError: a step of the client's part cannot be run.
        """
        try:
            return self.output.answers(outputs, self.output.places.shape)
        except FormatError as error:
            raise FormatError(
                f"the client's part of the manifest cannot be used: {error}", code="manifest"
            ) from error

    @cached_property
    def specs(self) -> list[KeySpec]:
        """The keys that the server needs, each checked against the bound of its own ring.

        Raises:
            FormatError: the head of the key set cannot be read.
            SecurityError: a key has less than 128 bits of security.
        """
        try:
            return read_key_set_head(self.keys.head, self.parameters)
        except SecurityError:
            raise
        except KeywrightError as error:
            raise FormatError(
                f"the list of keys of the manifest cannot be used: {error}", code="manifest"
            ) from error

    @cached_property
    def answer_bytes(self) -> int:
        """Most bytes of an answer."""
        n = 1 << self.parameters.log_n
        return self.output.places.ciphertexts * (2 * n * 8 * (self.output.level + 1) + 8192)

    def require(self, demands: Demands) -> None:
        """Refuse keys and messages that a client should not make or send, before it has a secret.

        Raises:
            SecurityError: the parameters, or a key, have less than 128 bits of security.
            LimitError: the manifest asks for more than the limits.
            FormatError: the list of keys cannot be used.
        """
        parameters = self.parameters
        demands.require_secure(parameters)
        demands.require_keys(1, self.keys.size)
        # Residues of 8 bytes in memory are packed to the bits of their primes in a file.
        bits = min(prime.bit_length() for prime in (*parameters.q, *parameters.p))
        least = sum(spec.bytes for spec in self.specs) * bits // 64
        demands.require_keys(len(self.specs), max(self.keys.size, least))
        n = 1 << parameters.log_n
        require_message("a request", self.input.places.ciphertexts * 2 * n * 8 * (self.input.level + 1))
        require_message("an answer", self.answer_bytes)

    @cached_property
    def encoded(self) -> bytes:
        """Return the bytes that are sent."""
        q, form, entering, leaving = self.parameters, self.format, self.input, self.output
        codecs = codecs_to_json(entering, leaving)
        entry: dict[str, Any] = {
            "format": FORMAT,
            "version": JOINED_VERSION if entering.places.parts > 1 else _version(codecs),
            "name": self.name,
            "packing": form.packing,
            "client": base64.b64encode(form.client).decode(),
            "parameters": base64.b64encode(form.parameters).decode(),
            "key_set": base64.b64encode(self.keys.head).decode(),
            "key_bytes": self.keys.size,
            "input": entering.places.to_json(),
            "output": leaving.places.to_json(),
            "input_level": entering.level,
            "output_level": leaving.level,
            "scale": str(form.scale),
            "input_range": entering.range,
            "divisor": entering.scale,
            "factor": leaving.scale,
            "program": self.program,
            "labels": leaving.labels,
        }
        if entering.log_n:
            entry["input_ring"] = entering.log_n
        entry |= codecs
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
            FormatError: it is malformed, of another version, or contradicts itself.
        """
        try:
            manifest = _read(data)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            raise FormatError(
                f"the manifest cannot be read: {error}; is this the address of keywright serve?",
                code="manifest",
            ) from error
        if len(data) > MAX_BYTES and manifest.input.steps.first is None:
            raise FormatError(
                f"the manifest has {len(data)} bytes; without first steps at most {MAX_BYTES} are read",
                code="manifest",
            )
        manifest._require_consistent(manifest.parameters)
        if manifest.encoded != data:
            raise FormatError("the manifest contradicts its own parameters", code="manifest")
        return manifest

    def _require_consistent(self, parameters: Parameters) -> None:
        """Check that the parts of a manifest fit each other; errors as for `read`."""
        thin = self.format.packing == "coefficients"
        places, output, binning = self.input.places, self.output.places, self.input.steps.binning
        if binning is not None and places.shape != (binning.bits,):
            raise FormatError(
                f"the first step gives {binning.bits} bits for an input of {places.shape}", code="manifest"
            )
        if (places.batch, places.parts) != (output.batch, output.parts):
            raise FormatError(
                f"{places.batch} samples go in and {output.batch} come out at a time, in {places.parts} and "
                f"{output.parts} parts",
                code="manifest",
            )
        low, high = self.input.range or (-math.inf, math.inf)
        if (
            thin
            and self.input.normalisation is None
            and not -self.input.scale <= low < high <= self.input.scale
        ):
            raise FormatError(
                f"inputs from {low} to {high}, divided by {self.input.scale}, exceed 1 in size",
                code="manifest",
            )
        most = _capacity(self, parameters) if thin else parameters.max_slots
        for each in (places, output):
            if each.size > most:
                raise FormatError(f"{each.size} places exceed the {most} of a ciphertext", code="manifest")
        room = sum(map(math.log2, parameters.q[: self.input.level + 1])) - 1
        if not thin and not math.log2(self.input_magnitude) + math.log2(self.format.scale) < room:
            # A client would stop before a large sample, and a server see that it was one.
            raise FormatError(
                f"values of the declared magnitude {self.input_magnitude:.6g} do not fit the modulus "
                f"of level {self.input.level}",
                code="manifest",
            )


def _version(codecs: Mapping[str, Any]) -> int:
    """Return the version of a manifest with entries of what clients compute."""
    if "limits" in codecs.get("binning", ()):
        return LIMITED_VERSION
    if "first_steps" in codecs or "bits" in codecs:
        return STEPPED_VERSION
    return BINNED_VERSION if "binning" in codecs else VERSION + ("normalised" in codecs)


def _read(data: bytes) -> Manifest:
    """Read a manifest; raises `ValueError` or what damaged entries raise."""
    entry = read_json(data, LIMITS)
    if entry.get("format") != FORMAT or entry.get("version") not in VERSIONS:
        raise ValueError(
            f"it has format {entry.get('format')!r:.60}, version {entry.get('version')!r:.20}; this release "
            f"reads {FORMAT}, versions {VERSION} to {JOINED_VERSION}"
        )
    if entry.get("packing") not in get_args(Packing):
        raise ValueError(
            f"the packing {entry.get('packing')!r:.60} of values is unknown; this release may be too old"
        )
    encoded, client, head = (_bytes(entry, name) for name in ("parameters", "client", "key_set"))
    parameters, steps = _parameters(encoded), read_steps(entry)
    entering, leaving = (Places.read(entry.get(end), end) for end in ("input", "output"))
    steps.require_shape(entering.shape if steps.binning is None else (steps.binning.features,))
    return Manifest(
        _text(entry, "name"),
        _text(entry, "program"),
        CiphertextFormat(entry["packing"], encoded, client, _scale(entry)),
        KeyList(head, whole(entry.get("key_bytes"), "key_bytes", 0, 1 << 48)),
        ManifestInput(
            entering,
            whole(entry.get("input_level"), "input_level", 0, parameters.max_level),
            range=read_interval(entry.get("input_range")),
            scale=read_divisor(entry.get("divisor")),
            normalisation=read_normalisation(entry, "input", len(entering.start)),
            steps=steps,
            log_n=whole(entry.get("input_ring", 0), "input_ring", 0, parameters.log_n - 1),
        ),
        ManifestOutput(
            leaving,
            whole(entry.get("output_level"), "output_level", 0, parameters.max_level),
            tuple(_text({"label": each}, "label") for each in read_list(entry.get("labels"), "the labels")),
            scale=_positive(entry, "factor"),
            normalisation=read_normalisation(entry, "output", len(leaving.start)),
            image=read_interval(entry.get("output_image"), "output_image"),
            client_part=None
            if "client_part" not in entry
            else ClientPart.read(entry["client_part"], len(leaving.start)),
        ),
    )


def _text(entry: Mapping[str, Any], name: str) -> str:
    """Return printable text."""
    value = entry.get(name)
    if not isinstance(value, str) or len(value) > MAX_LABEL or not value.isprintable():
        raise ValueError(f"{name} must be text of at most {MAX_LABEL} printable characters")
    return value


def _positive(entry: Mapping[str, Any], name: str) -> float:
    """Return a finite number above 0."""
    value = entry.get(name)
    if not isinstance(value, float) or not 0.0 < value < math.inf:
        raise ValueError(f"{name} must be a finite number above 0, got {value!r:.60}")
    return value


def _scale(entry: Mapping[str, Any]) -> int:
    """Return the scale, in decimal digits."""
    digits = _text(entry, "scale")
    if not (digits.isascii() and digits.isdigit() and len(digits) < 20 and int(digits) > 0):
        raise ValueError(f"scale must be an integer above 0 in decimal digits, got {digits!r:.60}")
    return int(digits)


def _bytes(entry: Mapping[str, Any], name: str) -> bytes:
    """Return bytes that are stored in base64."""
    try:
        return base64.b64decode(entry.get(name, ""), validate=True)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} is not base64") from error


@lru_cache(maxsize=2)
def _parameters(data: bytes) -> Parameters:
    """Read parameters once: their tables take time."""
    return Parameters.from_bytes(data, insecure=True)


def _capacity(manifest: Manifest, parameters: Parameters) -> int:
    """Check a thin client's parameters and return the number of values in its ciphertext."""
    try:
        client = ClientParameters.from_bytes(manifest.format.client, insecure=True)
    except KeywrightError as error:
        raise FormatError(
            f"the client's parameters of the manifest cannot be used: {error}", code="manifest"
        ) from error
    results = (client.log_n, client.modulus, client.scale)
    expected = (parameters.log_n, parameters.q[0], manifest.format.scale)
    if results != expected:
        raise FormatError(
            f"the client's parameters are for {results}, the server's for {expected}", code="manifest"
        )
    if client.maximum < 1 << client.fraction_bits:
        # A sample that passes the check of ranges must never be refused later, when others were sent.
        raise FormatError(
            f"the client's numbers end at {client.maximum} of 2^-{client.fraction_bits}, and inputs go to 1",
            code="manifest",
        )
    return client.capacity


def _map(normalisation: Normalisation | None) -> tuple[bytes, bytes] | None:
    return None if normalisation is None else (normalisation.offset.tobytes(), normalisation.scale.tobytes())


def _number_format(client: bytes) -> tuple[int, int] | None:
    """Return the fraction bits and the largest number of a thin client; None for other clients."""
    if not client:
        return None
    parameters = ClientParameters.from_bytes(client, insecure=True)
    return parameters.fraction_bits, parameters.maximum
