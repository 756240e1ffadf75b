"""Arguments that `keywright serve --ray` refuses before anything starts."""

from __future__ import annotations

import argparse

import pytest
from keywright._terminal import Terminal
from keywright.commands import serve
from keywright.commands.helpers.errors import CommandError


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        (["--ray", "local", "--state", "s", "--replicas", "3:2"], "3:2 is malformed"),
        (["--ray", "local", "--state", "s", "--replicas", "0"], "0 is malformed"),
        (["--ray", "local", "--state", "s", "--replicas", "2:many"], "2:many is malformed"),
        (["--ray", "local", "--state", "s", "--replicas", ""], "LEAST"),
        (["--ray", "local", "--state", "s", "--replica-cpus", "0"], "--replica-cpus 0"),
        (["--ray", "local"], "needs --state"),
    ],
)
def test_replicas_that_cannot_be(arguments: list[str], match: str) -> None:
    parser = argparse.ArgumentParser()
    serve.add_arguments(parser)
    with pytest.raises(CommandError, match=match):
        serve.run(parser.parse_args(["model", *arguments]), Terminal())
