"""Parameters named on the command line."""

from pathlib import Path

import keywright as kw

from .errors import CommandError


def named_parameters(preset: str | None, path: Path | None) -> kw.Parameters | None:
    """Return the parameters of a preset, with or without bootstrapping, or of a file; None if neither is
    named.

    Raises:
        CommandError: both are named, or the preset is unknown.
    """
    if preset is None:
        return None if path is None else kw.Parameters.load(path, insecure=True)
    if path is not None:
        raise CommandError("--preset and --parameters exclude each other; give one of them")
    if preset in kw.BootstrapperPlan.presets():
        return kw.BootstrapperPlan.preset(preset).parameters
    return kw.Parameters.preset(preset)
