"""The costs of a compiled model: levels, keys, bytes, predicted time, and how closely it follows the
model."""

from dataclasses import asdict, dataclass

from keywright._core import ClientParameters, Parameters
from keywright._units import format_bytes, format_seconds
from keywright.program.fit_report import FitReport
from keywright.program.program import Program

from .encrypted_error import EncryptedError

SEEDED_HEADER_BYTES, HEADER_BYTES = 127, 96
"""Bytes of a ciphertext besides its residues."""

UNPREDICTED = (
    "not predicted, for lack of calibration data, which a loaded model no longer has; keywright infer "
    "--explain predicts it from a model and samples"
)


@dataclass(frozen=True)
class RingFigures:
    """The rings of a model's ciphertexts.

    Attributes:
        parameters: a description.
        log_n: log2 of the ring degree.
        rings: log2 of the degrees of smaller rings of values.
    """

    parameters: str
    log_n: int
    rings: tuple[int, ...]


@dataclass(frozen=True)
class RunFigures:
    """The costs of one run of a model.

    Attributes:
        batch: samples that share ciphertexts.
        depth: levels from the input to the result.
        bootstraps: number of them.
        seconds: predicted for a batch, on one thread; with the bootstrap by which thin clients enter.
        entered: whether requests enter through a bootstrap, as those of thin clients do.
    """

    batch: int
    depth: int
    bootstraps: int
    seconds: float
    entered: bool = False


@dataclass(frozen=True)
class Sizes:
    """Sizes of a model's keys and ciphertexts.

    Attributes:
        keys: number of evaluation keys of the plan.
        key_bytes: their bytes as they are sent, once.
        sent_bytes: of the ciphertexts of a batch, which may have fewer samples.
        returned_bytes: of the ciphertexts of its answer; for thin clients the most, because low bits are left
            out of answers with small errors.
    """

    keys: int
    key_bytes: int
    sent_bytes: int
    returned_bytes: int


@dataclass(frozen=True)
class ModelReport:
    """Figures of a compiled model, before any key is made.

    Attributes:
        ring: rings of the ciphertexts.
        run: costs of one run.
        sizes: of keys and ciphertexts.
        fit: how the program in the clear differs from the model; None without calibration data.
        encrypted_error: the predicted error of encryption, compared with the spread of each output.
        first_step: what the client's first and last steps reveal; empty if there are none.
    """

    ring: RingFigures
    run: RunFigures
    sizes: Sizes
    fit: FitReport | None
    encrypted_error: EncryptedError | None = None
    first_step: str = ""

    @property
    def figures(self) -> dict[str, object]:
        """Return ring, run and sizes by name."""
        return {**asdict(self.ring), **asdict(self.run), **asdict(self.sizes), "first_step": self.first_step}

    @property
    def lines(self) -> dict[str, str]:
        """Return the lines of the report, by name."""
        sample = "a sample" if self.run.batch == 1 else f"{self.run.batch} samples"
        smaller = (
            f", values also in {', '.join(f'2^{ring}' for ring in self.ring.rings)}"
            if self.ring.rings
            else ""
        )
        table = {
            "parameters": self.ring.parameters,
            "ring degree": f"2^{self.ring.log_n}{smaller}",
            "levels": f"{self.run.depth} deep, {self._bootstraps}",
            "keys": f"{self.sizes.keys}, {format_bytes(self.sizes.key_bytes)}, sent once",
            "traffic": f"{format_bytes(self.sizes.sent_bytes)} sent and "
            f"{'at most ' if self.run.entered else ''}{format_bytes(self.sizes.returned_bytes)} returned "
            f"for {sample}",
            "time": f"about {format_seconds(self.run.seconds)} for {sample} on one thread, predicted",
        }
        if self.fit is None:
            table["fit"] = "no activation is replaced and no calibration data were given"
        else:
            table["fit"] = str(self.fit)
        if self.first_step:
            table["the client gets"] = self.first_step
        error = self.encrypted_error
        table["encryption"] = UNPREDICTED if error is None else str(error)
        for number, warning in enumerate(self.warnings, 1):
            table[f"warning {number}"] = warning
        return table

    @property
    def _bootstraps(self) -> str:
        count = self.run.bootstraps
        inside = f"{count or 'no'} {'bootstrap' if count == 1 else 'bootstraps'}"
        return f"enters through a bootstrap, {inside} after it" if self.run.entered else inside

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings about the fit and about the error of encryption."""
        fit = () if self.fit is None else self.fit.warnings
        return (*fit, *(() if self.encrypted_error is None else self.encrypted_error.warnings))

    def __str__(self) -> str:
        width = max(map(len, self.lines))
        return "\n".join(f"{name:<{width}}  {text}" for name, text in self.lines.items())


def revealed(program: Program) -> str:
    """Describe the information about the model that the client's steps reveal; empty if there are none."""
    steps = [] if program.input.steps.first is None else [str(program.input.steps.first)]
    steps += [] if program.input.steps.binning is None else [str(program.input.steps.binning)]
    steps += [] if program.output.client_part is None else [str(program.output.client_part)]
    return "; ".join(steps)


def sent_bytes(program: Program, parameters: Parameters, thin: ClientParameters | None = None) -> int:
    """Return the bytes of a batch's ciphertexts if the owner of the secret key encrypts them: one half is a
    seed.

    Args:
        thin: parameters of thin clients; None if clients encrypt slots.
    """
    if thin is not None:
        return program.input.layout.ciphertexts * thin.ciphertext_bytes(dropped=(0, 0))
    size = _polynomial_bytes(parameters, program.input.log_n, program.input.level)
    return program.input.layout.ciphertexts * (size + SEEDED_HEADER_BYTES)


def returned_bytes(program: Program, parameters: Parameters, thin: ClientParameters | None = None) -> int:
    """Return the most bytes of the ciphertexts of a batch's results; arguments as in `sent_bytes`."""
    ring = program.rings[program.output.ciphertexts[0]]
    size = _polynomial_bytes(parameters, ring, program.output.level if thin is None else 0)
    return program.output.layout.ciphertexts * (2 * size + HEADER_BYTES)


def _polynomial_bytes(parameters: Parameters, log_n: int, level: int) -> int:
    """Return the packed bytes of residues modulo the primes up to a level, in the ring of degree 2^log_n; 0
    means the largest."""
    bits = sum(prime.bit_length() for prime in parameters.q[: level + 1])
    return (bits << (log_n or parameters.log_n)) // 8
