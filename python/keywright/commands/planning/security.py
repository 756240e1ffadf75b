"""Estimate the security of parameters: bits per attack, by the cost models of the literature.

For a preset or a file of parameters, it estimates every kind of key: under the secret key, at the top level
with all special primes, in every smaller ring, and under the ephemeral secret of a bootstrap. To estimate a
single modulus, give --log-n, --log-qp, --secret, --sigma.

Most attacks reduce a lattice, block by block. usvp and bdd find the secret as a short or a close vector, and
dual distinguishes keys from random numbers. The others also guess coefficients of the secret: hybrid one
guess after the other, mitm (meet in the middle) in less time and more memory, and fft by a Fourier transform
over all guesses.
"""

import argparse
import math
import re
from pathlib import Path

import keywright as kw
from keywright import security
from keywright.commands.helpers.errors import CommandError
from keywright.commands.terminal import Column, Terminal, Value

NUMBERS = ("beta", "d", "zeta", "weight")
COLUMNS = [
    Column("attack", "attack"),
    Column("bits", "bits", "number"),
    Column("beta", "block", "number"),
    Column("d", "dimension", "number"),
    Column("zeta", "guessed", "number"),
    Column("weight", "not 0", "number"),
]

NOTE = (
    "\nblock: size of the blocks in which the lattice is reduced. dimension: of the lattice.\n"
    "guessed: coefficients of the secret that are guessed. not 0: how many of them are not 0.\n"
    "keywright security --help explains the attacks."
)

SUMMARY = [
    Column("what", "what"),
    Column("n", "N", "number"),
    Column("log_qp", "log2 QP", "number"),
    Column("secret", "secret"),
    Column("model", "model"),
    Column("bits", "bits", "number"),
    Column("cheapest", "cheapest attack"),
]

EXAMPLE = "keywright security N15_QP830_S45"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "parameters",
        nargs="?",
        metavar="PARAMETERS",
        help="one of keywright presets, or a file of Parameters.save",
    )
    parser.add_argument("--log-n", type=int, help="log2 of the ring degree")
    parser.add_argument("--log-qp", type=float, help="log2 of the product of ciphertext and special primes")
    parser.add_argument(
        "--secret", default="ternary", help="ternary (the default), or sparse:H for H coefficients of 1 or -1"
    )
    parser.add_argument(
        "--sigma", type=float, default=3.19, help="standard deviation of the error (default: 3.19)"
    )
    parser.add_argument(
        "--model",
        choices=sorted(security.MODELS),
        default="matzov",
        help="cost model of lattice reduction (default: matzov, the model of ePrint 2024/463)",
    )


def run(options: argparse.Namespace, terminal: Terminal) -> None:
    """Print a table for each key and one of all, or one object for each with --json."""
    summary: list[dict[str, Value]] = []
    for what, problem in _problems(options).items():
        with terminal.progress(f"estimating {what}", None):
            result = security.estimate(problem, options.model)
        rows = [_row(name, cost) for name, cost in result.costs.items()]
        about: dict[str, Value] = {
            "what": what,
            "n": problem.n,
            "log_qp": round(problem.log_q, 3),
            "secret": problem.secret.name,
            "sigma": problem.sigma,
            "model": result.model,
            "bits": _finite(result.bits),
            "cheapest": result.cheapest,
        }
        if terminal.json:
            terminal.record(about | {"attacks": rows})
        else:
            terminal.table(COLUMNS, rows, title=what)
        summary.append(about)
    if not terminal.json:
        terminal.table(SUMMARY, summary)
        terminal.text(NOTE)


def _row(name: str, cost: security.Cost) -> dict[str, Value]:
    numbers = {key: round(cost.numbers[key]) if key in cost.numbers else None for key in NUMBERS}
    return {"attack": name, "bits": _finite(cost.bits)} | numbers


def _finite(bits: float) -> float | None:
    return round(bits, 1) if math.isfinite(bits) else None


def _problems(options: argparse.Namespace) -> dict[str, security.Problem]:
    single = options.log_n is not None or options.log_qp is not None
    if single == (options.parameters is not None):
        fault = "there are both parameters and a modulus" if single else "there is nothing to estimate"
        raise CommandError(f"{fault}; name a preset or a file, or give --log-n and --log-qp")
    if single:
        if options.log_n is None or options.log_qp is None:
            raise CommandError("--log-n and --log-qp need each other; give both")
        if not security.LOG_N[0] <= options.log_n <= security.LOG_N[1]:
            low, high = security.LOG_N
            raise CommandError(f"--log-n {options.log_n} is out of range; use {low} to {high}")
        n = 1 << options.log_n
        return {"the key": security.Problem(n, options.log_qp, _secret(options.secret, n), options.sigma)}
    return of_parameters(options.parameters, options.sigma)


def _secret(text: str, n: int) -> security.Secret:
    if text == "ternary":
        return security.ternary()
    match = re.fullmatch(r"sparse:(\d{1,7})", text)
    if match is None:
        raise CommandError(f"--secret {text} is not a known distribution; write ternary or sparse:H")
    return security.sparse(int(match[1]), n)


def of_parameters(name: str, sigma: float) -> dict[str, security.Problem]:
    """Return the estimation problem of each secret of the parameters, with its largest modulus."""
    table: dict[str, security.Problem] = {}
    if name in kw.BootstrapperPlan.presets():
        plan = kw.BootstrapperPlan.preset(name)
        parameters: kw.Parameters | kw.bfv.Parameters = plan.parameters
        primes = [*parameters.q, *parameters.p]
        for key in plan.fixed_keys:
            if key.kind == "dense_to_sparse":
                used = [*range(key.level + 1), *key.special]
                bits = sum(math.log2(primes[index]) for index in used)
                n = 1 << key.log_n
                # Only the name of the key states the weight: "... an ephemeral secret of weight 32".
                (head,) = kw.keys.inspect(kw.keys.set_head([key]))["keys"]
                weight = int(head["element"].rpartition(" ")[2])
                table["the ephemeral key"] = security.Problem(n, bits, security.sparse(weight, n), sigma)
    elif name in kw.bfv.Parameters.presets():
        parameters = kw.bfv.Parameters.preset(name)
    elif name in kw.Parameters.presets():
        parameters = kw.Parameters.preset(name)
    elif Path(name).exists():
        parameters = kw.Parameters.load(name, insecure=True)
    else:
        raise CommandError(f"{name!r} is neither a preset nor a file; keywright presets lists the presets")
    if isinstance(parameters, kw.Parameters):
        for ring in parameters.subrings:
            table[f"the subring of degree 2^{ring.log_n}"] = _dense(ring, sigma)
    return {"the key": _dense(parameters, sigma)} | table


def _dense(parameters: kw.Parameters | kw.bfv.Parameters, sigma: float) -> security.Problem:
    """Return a key at the top level, with as many special primes as the security bound allows."""
    secret = getattr(parameters, "secret_distribution", "ternary")
    weight = re.fullmatch(r"ternary of weight (\d+)", secret)
    n = 1 << parameters.log_n
    distribution = security.sparse(int(weight[1]), n) if weight else security.ternary()
    bits = parameters.log_qp
    if not parameters.insecure:
        bits = min(bits, security.maximum_log_qp(parameters.log_n, int(weight[1]) if weight else None))
    return security.Problem(n, bits, distribution, sigma)
