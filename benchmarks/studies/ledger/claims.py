"""Claims of a paper, from a TOML file: the claim, the figure of a record, and the verdict."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

from studies.ledger.expressions import Expressions
from studies.ledger.records import ROOT

FOLDER = Path(__file__).parent / "claims"
PAPERS = ("kds", "ark", "chem", "boosted_deflation", "key_switch")
VERDICTS = ("confirmed", "refuted", "surpassed", "differs", "toy", "not run", "cannot be compared")
UNSUPPORTED = {"toy", "not run", "cannot be compared"}
FIRST = 5
"""Claims of a paper that its page has before the others."""

"""Verdicts that need no record."""

CODE = re.compile(r"`[^`]*`")
BARE = re.compile(r"(?<![\w^/.-])\d[\d,.]*(?![\w^]|-\d)")
"""A number that stands alone; not that of a name or of an exponent."""


class BadClaim(Exception):
    """A claim that is not supported by a record, or has an unknown verdict."""


@dataclass(frozen=True)
class Claim:
    """One line of the ledger.

    Attributes:
        place: where the paper has it.
        claim: what is claimed, in a few words.
        theirs: the paper's figure.
        ours: ours, figures filled in; a reason where there is none.
        verdict: one of `VERDICTS`.
        records: names of the records that the figures are of.
        test: the test that shows it, where it is no figure; relative to the repository.
        first: whether the page of the paper has it before the others.
    """

    place: str
    claim: str
    theirs: str
    ours: str
    verdict: str
    records: tuple[str, ...] = ()
    test: str = ""
    first: bool = False


@dataclass(frozen=True)
class Paper:
    """A paper and its claims in its order; `name` is that of its file."""

    name: str
    short: str
    title: str
    about: str
    claims: tuple[Claim, ...]


def paper(path: Path, expressions: Expressions) -> Paper:
    """A paper's claims, with the figures of the records.

    Raises:
        BadClaim: a figure of ours is typed and not taken from a record, a verdict has nothing behind it, or
            is unknown, or too many come first.
        NoFigure: a record does not have a figure.
    """
    read = tomllib.loads(path.read_text(encoding="utf-8"))
    claims = []
    for fields in read["claim"]:
        where = f"{path.name}, {fields['place']}: {fields['claim']}"
        typed = fields["ours"]
        ours = expressions.fill(typed)
        bare = BARE.findall(CODE.sub("", expressions.without(typed)))
        if bare:
            raise BadClaim(f"{where}: {bare[0]} is typed; take it from a record or, a setting, quote it")
        claim = Claim(**{**fields, "ours": ours}, records=tuple(expressions.used))
        if claim.verdict not in VERDICTS:
            raise BadClaim(f"{where}: {claim.verdict!r} is no verdict; there are {', '.join(VERDICTS)}")
        if claim.theirs == "-" and claim.verdict != "cannot be compared":
            raise BadClaim(f"{where}: {claim.verdict}, and the paper has no figure")
        if claim.verdict not in UNSUPPORTED and not (claim.records or claim.test):
            raise BadClaim(f"{where}: {claim.verdict} by no record and no test")
        if claim.test and not (ROOT / claim.test.partition("::")[0]).is_file():
            raise BadClaim(f"{where}: there is no {claim.test}")
        claims.append(claim)
    if sum(claim.first for claim in claims) > FIRST:
        raise BadClaim(f"{path.name}: more than {FIRST} claims come first")
    return Paper(path.stem.replace("_", "-"), read["short"], read["title"], read["about"], tuple(claims))
