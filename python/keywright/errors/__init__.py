"""Every exception of Keywright, with the offending value and its bound.

A message states the fault, its place and its cause, and after its last semicolon the remedy. Arguments are
written ``name=value``; the command line prints message and advice on separate lines and writes
``--name value``. File-system errors stay `OSError`, wrong Python types stay `TypeError`.
"""

from .engine import (
    AggregationError,
    EncodeError,
    FormatError,
    KeySourceError,
    KeywrightError,
    LevelError,
    MismatchError,
    MissingKeyError,
    NoiseError,
    OperandError,
    OutOfMemoryError,
    ParameterError,
    PoolError,
    RandomnessError,
    ScaleError,
    SecurityError,
)
from .model import FolderError, SecretFileWarning
from .network import ModelRefusedError, OutOfRangeError, PackageMissingError, RefusalError
from .planning import InfeasibleBudgetError, WorkloadError
from .search import SearchError
from .service import (
    BadRequestError,
    BusyError,
    ConfigurationError,
    DiskError,
    EvaluationError,
    InvalidObjectError,
    InvalidReplyError,
    LimitError,
    OtherModelError,
    RetiredError,
    SecretRefusedError,
    ServeError,
    StorageError,
    UnauthorizedError,
    UnknownJobError,
    UnknownKeysError,
    UnreachableError,
    UploadError,
    WorkerEndedError,
    WrongAnswerError,
)

__all__ = [
    "AggregationError",
    "BadRequestError",
    "BusyError",
    "ConfigurationError",
    "DiskError",
    "EncodeError",
    "EvaluationError",
    "FolderError",
    "FormatError",
    "InfeasibleBudgetError",
    "InvalidObjectError",
    "InvalidReplyError",
    "KeySourceError",
    "KeywrightError",
    "LevelError",
    "LimitError",
    "MismatchError",
    "MissingKeyError",
    "ModelRefusedError",
    "NoiseError",
    "OperandError",
    "OtherModelError",
    "OutOfMemoryError",
    "OutOfRangeError",
    "PackageMissingError",
    "ParameterError",
    "PoolError",
    "RandomnessError",
    "RefusalError",
    "RetiredError",
    "ScaleError",
    "SearchError",
    "SecretFileWarning",
    "SecretRefusedError",
    "SecurityError",
    "ServeError",
    "StorageError",
    "UnauthorizedError",
    "UnknownJobError",
    "UnknownKeysError",
    "UnreachableError",
    "UploadError",
    "WorkerEndedError",
    "WorkloadError",
    "WrongAnswerError",
]

for _name in __all__:
    globals()[_name].__module__ = __name__  # tracebacks name the class as programs import it
