"""Loads one half of a model from a folder: `load_client` and `load_server`."""

from pathlib import Path

from keywright._core import PublicKey, SecretKey

from .client import ModelClient
from .folder.files import (
    PARAMETERS,
    PLAN,
    PROGRAM,
    PUBLIC_KEY,
    SECRET_KEY,
    has_file,
    require_files,
    require_no_secret,
    warn_of_readers,
)
from .model import Model
from .served.demands import KEY_BYTES, KEY_COUNT, Demands
from .server import ModelServer


def load_client(
    folder: str | Path, *, insecure: bool = False, key_bytes: int = KEY_BYTES, key_count: int = KEY_COUNT
) -> ModelClient:
    """Load the client of a model, from a folder of `Model.save`, `ModelClient.save`, or
    ``keywright keygen``.

    A secret key in the folder is read, with a `SecretFileWarning` if other users can read it. Without a
    secret and a public key, a new secret key is made, which `ModelClient.save` stores. The author of a
    model's folder chooses the parameters and the keys, so both are checked before a secret is made or read.
    A person who put a secret or a public key into the folder can read what is encrypted with it: for a model
    by somebody else, ``keywright.load(folder).client()`` makes a new one.

    Args:
        folder: the folder.
        insecure: whether parameters below 128 bits of security are accepted, for experiments on made-up data.
        key_bytes, key_count: most bytes and most keys that the folder's plan may ask for, master keys among
            them; 32 GiB and 4096 by default. They are checked when keys are made.

    Raises:
        FolderError: files are missing.
        FolderError: the description of the model is damaged.
        SecurityError: the parameters have less than 128 bits of security.
        ParameterError: a limit is below 1.
    """
    place, demands = Path(folder), Demands(insecure, key_bytes, key_count)
    require_files(place, (PARAMETERS, PROGRAM), "client folder of keywright keygen, or the model's folder")
    model = Model.read(place)
    parameters = model.parameters
    demands.require_secure(parameters)

    if has_file(place, SECRET_KEY):
        warn_of_readers(place / SECRET_KEY)
        return ModelClient(model, secret=SecretKey.load(place / SECRET_KEY, parameters), demands=demands)
    if has_file(place, PUBLIC_KEY):
        return ModelClient(model, public=PublicKey.load(place / PUBLIC_KEY, parameters), demands=demands)
    return ModelClient(model, secret=SecretKey.generate(parameters), demands=demands)


def load_server(
    folder: str | Path, *, memory: int | None = None, key_memory: int | None = None
) -> ModelServer:
    """Load the server of a model from a folder. After `Model.save` it gets keys by `ModelServer.load_keys`; a
    folder of ``keywright keygen`` contains keys for `ModelServer.open_keys`.

    Args:
        memory, key_memory: see `ModelServer`.

    Raises:
        FolderError: files are missing, or the folder holds a secret key, as a client's does.
        MismatchError: the key plan is for something else.
    """
    origin = "server folder of keywright keygen, or the model's folder"
    require_files(Path(folder), (PARAMETERS, PROGRAM, PLAN), origin)
    require_no_secret(Path(folder))
    return Model.read(Path(folder)).server(memory=memory, key_memory=key_memory)
