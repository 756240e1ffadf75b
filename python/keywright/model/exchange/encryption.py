"""The client's ciphertexts: encrypts samples as a manifest asks, and decrypts answers."""

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from keywright._copies import Unpicklable
from keywright._core import (
    Ciphertext,
    Client,
    ClientParameters,
    Decryptor,
    Encryptor,
    Flooding,
    Parameters,
    PublicKey,
    SecretKey,
    SeededCiphertext,
)
from keywright.errors import FormatError, ParameterError
from keywright.errors.engine import MissingKeyError
from keywright.model.folder.files import PUBLIC_KEY, SECRET_KEY
from keywright.model.served.manifest import Manifest


def require_secret(secret: SecretKey | None) -> SecretKey:
    """Return the secret key of a client.

    Raises:
        MissingKeyError: it has none.
    """
    if secret is None:
        raise MissingKeyError(
            "this client has only a public key, so it can only encrypt; make keys and decrypt with the one "
            f"that keywright.load_client loads from the folder with {SECRET_KEY}, which ModelClient.save and "
            "keywright keygen write",
            code="client",
        )
    return secret


class Encryption(
    Unpicklable, elsewhere="save the client, and load it in the other process with keywright.load_client"
):
    """Keys of one client, for the ciphertexts of a model.

    With the secret key, half of every ciphertext of slots is a 32-byte seed. With a public key alone, they
    take twice the bytes.

    Thread safety: any number of threads may use one at the same time.

    Args:
        manifest: of the model.
        parameters: parameters of the manifest.
        secret: the secret key; None for a client that only encrypts, with ``public``.
        public: the public key.
    """

    def __init__(
        self,
        manifest: Manifest,
        parameters: Parameters,
        secret: SecretKey | None = None,
        public: PublicKey | None = None,
    ) -> None:
        self.manifest, self.parameters = manifest, parameters
        self._secret, self._public = secret, public

    def encrypt(self, batch: NDArray[np.float64], first: int | None = None) -> list[bytes]:
        """Encrypt samples that share ciphertexts.

        Args:
            batch: up to ``manifest.input.batch`` samples, (count, *shape).
            first: the first place of the samples; by default they are repeated in all places.

        Raises:
            EncodeError: a value is above the magnitude that the manifest declares.
            OutOfRangeError: the same, for a thin client.
            MissingKeyError: there is no key to encrypt with.
        """
        manifest = self.manifest
        entering = manifest.input.entering(batch)
        rows = manifest.input.places.pack(entering, first)
        if self._thin is not None:
            manifest.input.require_magnitude(batch, manifest.input_magnitude)
            one = 2.0**self._thin.parameters.fraction_bits
            return [self._thin.encrypt(np.rint(row * one).astype(np.int64), dropped=0) for row in rows]
        return [bytes(self._slots(row).to_bytes()) for row in rows]

    def _slots(self, row: NDArray[np.float64]) -> Ciphertext | SeededCiphertext:
        manifest, ring = self.manifest, self.manifest.input.log_n
        size, level, magnitude = len(row), manifest.input.level, manifest.input_magnitude
        if self._secret is not None:
            return self._decryptor.encrypt(row, size, level, ring or None, magnitude)
        if self._public is None:
            raise MissingKeyError(
                f"the client cannot encrypt: it has neither {PUBLIC_KEY} nor {SECRET_KEY}", code="client"
            )
        return Encryptor(self._public).encrypt(row, size, level, magnitude)

    def decrypt(
        self, objects: Sequence[bytes], count: int, first: int | None = None, flooding: Flooding | None = None
    ) -> NDArray[np.float64]:
        """Decrypt the answer to a request.

        Args:
            objects: its ciphertexts.
            count: number of samples.
            first: the first place of the samples.
            flooding: adds noise; every ciphertext is one of its queries.

        Returns:
            The outputs, (count, *manifest.output.shape).

        Raises:
            FormatError: the ciphertexts cannot be read, have another shape, or decrypt to numbers that are
                not finite.
            ParameterError: thin clients add no noise.
        """
        manifest = self.manifest
        places = manifest.output.places
        rows = [self._numbers(data, flooding) for data in objects]
        if len(rows) != places.ciphertexts or any(len(row) != places.size for row in rows):
            raise FormatError(
                f"the answer has {len(rows)} ciphertexts of {[len(row) for row in rows]} numbers, but the "
                f"model returns {places.ciphertexts} of {places.size}",
                code="field",
            )
        if not np.isfinite(rows).all():
            raise FormatError(
                "the answer decrypts to numbers that are not finite: its scale is not one that the program "
                "produces",
                code="field",
            )
        return manifest.output.leaving(places.unpack(np.asarray(rows), count, first or 0))

    def _numbers(self, data: bytes, flooding: Flooding | None) -> NDArray[np.float64]:
        if self.manifest.format.packing == "slots":
            return self._decryptor.decrypt(Ciphertext.from_bytes(data, self.parameters), flooding)
        if flooding is not None:
            raise ParameterError(
                "thin clients decrypt without flooding; use a model for slots to hand decryptions out",
                what="flooding",
            )
        assert self._thin is not None
        return self._thin.decrypt(data) / 2.0**self._thin.parameters.fraction_bits

    @cached_property
    def _thin(self) -> Client | None:
        """The thin client's keys; None if values are in slots."""
        if self.manifest.format.packing == "slots":
            return None
        parameters = ClientParameters.from_bytes(self.manifest.format.client, insecure=True)
        return Client.from_secret(require_secret(self._secret), parameters)

    @cached_property
    def _decryptor(self) -> Decryptor:
        return Decryptor(require_secret(self._secret))
