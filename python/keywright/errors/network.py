"""The exceptions of compiling, checking, storing and running networks."""

from collections.abc import Sequence
from typing import Self

from .engine import KeywrightError


class CompilerError(KeywrightError):
    """Base of every error of `keywright.compiler`."""


class RefusalError(CompilerError):
    """One reason why a model cannot be compiled; raised together with all others in `ModelRefusedError`."""


class UnsupportedOperatorError(RefusalError):
    """An ONNX operator that has no encrypted form here.

    Attributes:
        node: name of the node in the model.
        operator: ONNX operator type.
        supported: operators that have one, if there is no other advice.
    """

    def __init__(self, node: str, operator: str, advice: str, supported: Sequence[str] = ()) -> None:
        what = advice or "replace it by operators that have an encrypted form"
        super().__init__(f"node {node!r}: operator {operator} is not supported; {what}")
        self.node, self.operator = node, operator
        self.supported = () if advice else tuple(supported)


class UnsupportedAttributeError(RefusalError):
    """An attribute or operand of a supported operator that has no encrypted form here.

    Attributes:
        node: name of the node in the model.
        operator: ONNX operator type.
        attribute: name of the attribute or operand.
    """

    def __init__(self, node: str, operator: str, attribute: str, value: object, allowed: str) -> None:
        super().__init__(
            f"node {node!r}: {operator} with {attribute} = {value} is not supported; needs {allowed}"
        )
        self.node, self.operator, self.attribute = node, operator, attribute


class DynamicShapeError(RefusalError):
    """A dimension other than the batch is not a number; a program is compiled for one shape."""

    def __init__(self, name: str, shape: Sequence[object]) -> None:
        shown = ", ".join(str(size) for size in shape)
        super().__init__(
            f"value {name!r} has shape ({shown}); fix every dimension except the first "
            "when exporting the model"
        )
        self.name = name


class InvalidModelError(RefusalError):
    """The model contradicts itself: shapes that do not fit, values that nothing computes, non-finite
    weights."""


class NotExportedError(RefusalError):
    """A library's exporter could not write a model as ONNX.

    Attributes:
        model: its class.
        exporter: the function that was called.
    """

    def __init__(self, model: str, exporter: str, error: Exception) -> None:
        text = " ".join(str(error).split())
        super().__init__(
            f"{exporter} cannot export {model}: {text[:300]}{'...' if len(text) > 300 else ''}; export it "
            "to ONNX yourself, or build it from other layers"
        )
        self.model, self.exporter = model, exporter


class TooDeepError(RefusalError):
    """The network needs more levels than are available.

    Attributes:
        needed: levels that the network consumes from input to output.
        available: levels that the parameters have above the output level.
    """

    def __init__(
        self, needed: int, available: int, maxima: Sequence[str] = (), *, approximated: bool = False
    ) -> None:
        """``maxima`` are layers that compare; ``approximated``: whether polynomials were chosen that follow
        the model."""
        fewer = f"AveragePool instead of {', '.join(maxima[:3])}" if maxima else "fewer layers"
        follows = ", with the cheapest polynomials that follow the model" if approximated else ""
        less = "a lower accuracy (accuracy=, error=), " if approximated else ""
        super().__init__(
            f"the network consumes {needed} levels{follows}, but {available} are available; use parameters "
            f"with more levels or with bootstraps (preset=), {less}activations of lower degree "
            f"(activations=), or {fewer}"
        )
        self.needed, self.available = needed, available


class CannotPlaceError(RefusalError):
    """No placement of bootstraps reaches a layer.

    Attributes:
        layer: the layer: its kind, and its ONNX node if it has one.
        need: level at which its result is needed.
        consumed: levels that it consumes.
        levels: highest level of a ciphertext.
        unbounded: largest absolute value of layers whose values no constant factor can bring to at most 1, so
            that they cannot be bootstrapped.
    """

    def __init__(
        self,
        layer: str,
        need: int,
        consumed: int,
        levels: int,
        offered: Sequence[tuple[int, int]],
        unbounded: dict[str, float],
    ) -> None:
        between = ", ".join(f"{low} to {high}" for low, high in offered)
        text = (
            f"{layer} is needed at level {need} and consumes {consumed}, which exceeds the highest level, "
            f"{levels}, and no bootstrap ({between}) can follow it"
        )
        if unbounded:
            shown = ", ".join(f"{name} ({bound:.3g})" for name, bound in list(unbounded.items())[:5])
            text += f"; these have values above 1 that no constant factor can reduce: {shown}"
        super().__init__(
            f"{text}; use a bootstrap with more levels, activations of lower degree, or a normalisation "
            "before a layer with large values"
        )
        self.layer, self.need, self.consumed, self.levels = layer, need, consumed, levels
        self.unbounded = unbounded


class TooWideError(RefusalError):
    """A layer's plaintext diagonals would need more memory than allowed.

    Attributes:
        needed: bytes of the diagonals.
        allowed: the bound that was given.
    """

    def __init__(self, needed: int, allowed: int) -> None:
        super().__init__(
            f"the network's diagonals take {needed} bytes, but {allowed} are allowed; use smaller layers "
            "or a smaller batch=, or allow more (max_plaintext_bytes= of compiler.compile)"
        )
        self.needed, self.allowed = needed, allowed


class ModelTooLargeError(RefusalError):
    """A part of the model would exceed a limit of the compiler; nothing of that size was allocated.

    Attributes:
        size: its size.
        allowed: the limit.
    """

    def __init__(self, what: str, unit: str, size: int, allowed: int, advice: str | None = None) -> None:
        less = advice or "use smaller images, fewer channels or a stride before wide layers"
        super().__init__(f"{what} takes {size} {unit}, but {allowed} are allowed; {less}")
        self.size, self.allowed = size, allowed


class RangesMissingError(RefusalError):
    """Bootstraps are needed, whose inputs must be at most 1, and no calibration data were given."""

    def __init__(self, needed: int, available: int) -> None:
        super().__init__(
            f"the network consumes {needed} levels, but {available} are available before a bootstrap, "
            "whose inputs must be at most 1; give typical inputs to measure them on (calibration=)"
        )
        self.needed, self.available = needed, available


class CalibrationMissingError(RefusalError):
    """Activations whose input range is unknown because no calibration data were given."""

    def __init__(self, functions: Sequence[str]) -> None:
        shown = ", ".join(functions[:3]) + (f" and {len(functions) - 3} more" if len(functions) > 3 else "")
        super().__init__(f"{shown} must be fitted on measured ranges; give typical inputs (calibration=)")
        self.functions = tuple(functions)


class MethodError(RefusalError):
    """A composition of minimax polynomials was requested for a function that is not piecewise linear.

    Attributes:
        layer: function and ONNX node.
        method: the requested method.
    """

    def __init__(self, layer: str, method: str) -> None:
        super().__init__(
            f"{layer} is not piecewise linear, which {method} needs; use chebyshev:DEGREE for it "
            "(activations=)"
        )
        self.layer, self.method = layer, method


class UnknownActivationError(RefusalError):
    """A method was given for a name that is neither a function nor an ONNX node of the model."""

    def __init__(self, names: Sequence[str], known: Sequence[str]) -> None:
        way_out = f"use one of {', '.join(known)}" if known else "the model has none; leave activations= out"
        super().__init__(f"no activation is called {', '.join(map(repr, names))}; {way_out}")
        self.names = tuple(names)


class AccuracyError(RefusalError):
    """No choice of polynomials follows the model as closely as required, or as the default rule does.

    Attributes:
        agreement: share of calibration samples with equal predictions that the finest choice reaches; None
            for one output.
        change: the largest change of an output with it.
        levels: levels that the network consumes with it.
    """

    def __init__(
        self,
        accuracy: float | None,
        error: float | None,
        agreement: float | None,
        change: float,
        levels: int,
        *,
        default: str | None = None,
        loosest: str = "",
        bins: int = 0,
    ) -> None:
        """``default`` describes the default rule, if nothing else is required; ``loosest`` the worst fit;
        ``bins`` is their number for each feature of trees, where nothing else is approximated."""
        asked = [] if accuracy is None else [f"{accuracy:.4%} equal predictions"]
        asked += [] if error is None else [f"outputs within {error:g}"]
        reached = "" if agreement is None else f"{agreement:.4%} equal predictions and "
        less = "require less (accuracy=, error=)" if default is None else "allow more (accuracy=, error=)"
        finest = f"{bins} bins of each feature" if bins else "the finest polynomials"
        way_out = (
            f"with {levels} levels; the loosest fit is {loosest}; {less}, give calibration data that cover "
            "the inputs (calibration=), or normalise before activations of large values"
        )
        if bins:
            way_out = (
                f"with {levels} levels; {less}, allow more bins (bins=), or publish thresholds (thresholds=)"
            )
        super().__init__(
            f"the {'requirement' if default is None else 'default'} on calibration data is "
            f"{default or ' and '.join(asked)}; {finest} reach {reached}outputs within {change:.3g}, "
            f"{way_out}"
        )
        self.agreement, self.change, self.levels = agreement, change, levels


class OverflowingPolynomialError(RefusalError):
    """With a requested polynomial, outputs grow beyond any use on the calibration data.

    Attributes:
        layer: function and ONNX node of the first polynomial whose input leaves its range, or of the loosest.
        method: of its approximation.
        low, high: its range.
        change: the largest change of an output.
    """

    def __init__(
        self, layer: str, method: str, low: float, high: float, change: float, excess: float | None
    ) -> None:
        """``excess``: how far values leave the range, as a share of its width; None if they do not."""
        leaves = "" if excess is None else f", which calibration data leave by {excess:.3g} times its width"
        super().__init__(
            f"the outputs change by {change:.3g} on calibration data, first because of {layer}: {method} on "
            f"{low:.6g} to {high:.6g}{leaves}; request a finer method (activations=) or none, give "
            "calibration data that cover the inputs (calibration=), or a larger margin="
        )
        self.layer, self.method, self.low, self.high, self.change = layer, method, low, high, change


class NoLabelsError(RefusalError):
    """An accuracy was required for a model with one output that is not a label."""

    def __init__(self) -> None:
        super().__init__(
            "the model has one output that is not a label, so it has no predictions; bound the change of "
            "the output instead (error=)"
        )


class ModelRefusedError(ExceptionGroup[RefusalError], CompilerError):
    """The model cannot be compiled. Its ``exceptions`` are all the reasons; `except*` selects among them."""

    def __new__(cls, reasons: Sequence[RefusalError]) -> Self:
        lines = "".join(f"\n  - {reason}" for reason in reasons)
        lists = (reason.supported for reason in reasons if isinstance(reason, UnsupportedOperatorError))
        supported = next((", ".join(names) for names in lists if names), "")
        known = f"\noperators with an encrypted form: {supported}" if supported else ""
        return super().__new__(cls, f"the model cannot be compiled:{lines}{known}\n", reasons)

    def __init__(self, reasons: Sequence[RefusalError]) -> None:
        """See `ModelRefusedError.exceptions` for the reasons."""


class InvalidSamplesError(CompilerError, ValueError):
    """Input data of the wrong shape, without samples, or with values that are not finite."""


class MinimaxError(CompilerError, ValueError):
    """A minimax polynomial that does not exist, or that double precision cannot reach."""


class InvalidBootstrapError(CompilerError, ValueError):
    """The description of a bootstrap contradicts itself."""


class InvalidCostsError(CompilerError, ValueError):
    """A cost table that is empty, too long, not positive, or cheaper at a higher level."""


class OutOfRangeError(CompilerError):
    """A sample drives a value out of the range that the program is calibrated for: its result would be wrong.

    Attributes:
        layer: the layer that takes the value.
        value: the value furthest outside.
        low, high: the range.
    """

    def __init__(self, layer: str, value: float, low: float, high: float) -> None:
        super().__init__(
            f"{layer} takes values from {low:.6g} to {high:.6g}, but this sample gives {value:.6g}, so "
            "the encrypted result would be wrong; check the sample's scale, or compile with calibration "
            "data that cover it, or with finer polynomials before this layer (activations=, error=)"
        )
        self.layer, self.value, self.low, self.high = layer, value, low, high


class NoPredictionError(CompilerError):
    """The engine cannot predict the errors of a bootstrapping.

    Attributes:
        order: of its stages.
    """

    def __init__(self, order: str) -> None:
        super().__init__(
            f'the errors of a bootstrapping of order "{order}" cannot be predicted; use one of order '
            '"slots_to_coeffs_first"'
        )
        self.order = order


class OutOfLevelsError(CompilerError):
    """An operation needs more levels than its operand has.

    Attributes:
        level: the operand's level.
        needed: levels that the operation consumes.
    """

    def __init__(self, operation: str, level: int, needed: int) -> None:
        super().__init__(
            f"{operation} consumes {needed} levels, but its operand is at level {level}; start at a "
            "higher level"
        )
        self.level, self.needed = level, needed


class BackendMisuseError(CompilerError, ValueError):
    """Operands that do not belong together: different levels, different slot counts, unknown steps."""


class ProgramFormatError(CompilerError, ValueError):
    """A program file is damaged, foreign, of an unknown version or larger than allowed."""


class OnnxruntimeMissingError(CompilerError, ImportError):
    """The comparison with the clear model needs onnxruntime."""

    def __init__(self) -> None:
        super().__init__("onnxruntime is not installed; install it with: pip install 'keywright[check]'")


class ExporterMissingError(CompilerError, ImportError):
    """A library's exporter to ONNX is not installed.

    Attributes:
        package: its name.
    """

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(f"{package} is not installed; install it with: pip install 'keywright[{extra}]'")
        self.package = package
