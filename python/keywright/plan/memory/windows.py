"""What Windows says of memory. Its library is an argument, so that a test can stand in for it."""

import ctypes
from typing import Any


class _Status(ctypes.Structure):
    """MEMORYSTATUSEX."""

    _fields_ = (
        ("length", ctypes.c_uint32),
        ("load", ctypes.c_uint32),
        *((name, ctypes.c_uint64) for name in ("total", "available", "total_page", "available_page")),
        *((name, ctypes.c_uint64) for name in ("total_virtual", "available_virtual", "extended_virtual")),
    )


class _Counters(ctypes.Structure):
    """PROCESS_MEMORY_COUNTERS."""

    _fields_ = (
        ("length", ctypes.c_uint32),
        ("faults", ctypes.c_uint32),
        *((name, ctypes.c_size_t) for name in ("peak", "resident", "peak_paged", "paged")),
        *((name, ctypes.c_size_t) for name in ("peak_nonpaged", "nonpaged", "committed", "peak_committed")),
    )


def kernel32() -> Any:
    """The library of the system, with the types of what is called.

    Raises:
        OSError: this is not Windows.
    """
    try:
        library = getattr(ctypes, "WinDLL")("kernel32", use_last_error=True)  # noqa: B009 - only there
    except AttributeError as error:
        raise OSError("there is no kernel32: this is not Windows") from error
    library.GetCurrentProcess.restype = ctypes.c_void_p
    library.K32GetProcessMemoryInfo.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint32)
    return library


def available_bytes(library: Any) -> int:
    """Memory that programs can take without swapping.

    Raises:
        OSError: the system does not say.
    """
    status = _Status()
    status.length = ctypes.sizeof(status)
    if not library.GlobalMemoryStatusEx(ctypes.byref(status)):
        raise OSError("GlobalMemoryStatusEx does not say how much memory there is")
    return int(status.available)


def process_bytes(library: Any) -> tuple[int, int]:
    """Memory that this process has now, and the most that it has had.

    Raises:
        OSError: the system does not say.
    """
    counters = _Counters()
    counters.length = ctypes.sizeof(counters)
    process = library.GetCurrentProcess()
    if not library.K32GetProcessMemoryInfo(process, ctypes.byref(counters), counters.length):
        raise OSError("K32GetProcessMemoryInfo does not say how much memory the process has")
    return int(counters.resident), int(counters.peak)
