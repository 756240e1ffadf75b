"""Work on the next item while one is used."""

from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from keywright._core import threads

Item = TypeVar("Item")
Result = TypeVar("Result")


def worked_ahead(work: Callable[[Item], Result], items: Iterable[Item]) -> Generator[Result, None, None]:
    """Yield the results of a function for items, in their order. In a process of several threads, a worker
    computes the next result while one is used, and two compute two while the caller waits. The item behind
    the next is begun when the caller asks for the next."""
    if threads() < 2:
        yield from map(work, items)
        return
    pending: deque[Future[Result]] = deque()
    with ThreadPoolExecutor(2) as pool:
        for item in items:
            pending.append(pool.submit(work, item))
            if len(pending) > 1:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
