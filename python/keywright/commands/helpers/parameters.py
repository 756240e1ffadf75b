"""The parameters that a command is told."""

from pathlib import Path

import keywright as kw

from .errors import CommandError


def named_parameters(preset: str | None, path: Path | None) -> kw.Parameters | None:
    """The parameters of a preset, levelled or bootstrapping, or of a file; None if neither is named.

    Raises:
        CommandError: both are, or there is no such preset.
    """
    if preset is None:
        return None if path is None else kw.Parameters.load(path)
    if path is not None:
        raise CommandError("give either --preset or --parameters")
    if preset in kw.bootstrap_presets():
        return kw.BootstrapperPlan.preset(preset).parameters
    return kw.Parameters.preset(preset)
