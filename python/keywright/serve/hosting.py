"""`serve`: a model as a service of this process, while a block runs."""

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

from keywright._processes import temporary_folder
from keywright.model.model import Model

from .http.server import Server
from .served.interface import Served
from .service import Service, ServiceLimits
from .workers.workers import Workers


@contextmanager
def serve(
    models: Model | Served | Sequence[Model | Served],
    state: str | Path | None = None,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    limits: ServiceLimits | None = None,
    workers: Workers | None = None,
) -> Iterator[Server]:
    """Serve models while a ``with`` block runs, for clients such as `keywright.client.RemoteModel`.

    A thread of this process answers requests, and other processes evaluate them. For accounts, quotas, TLS or
    a page, use `Service` and `Server`.

    Args:
        models: one model, or several with different manifests, from `keywright.compile` or `keywright.load`;
            and indices of vectors, each a `ServedIndex`.
        state: folder of key sets and evaluations, which outlive the block; by default a temporary one.
        host: address to listen on; the loopback by default.
        port: 0 for any free port.
        limits: of the service.
        workers: processes that evaluate; by default one, which ends with the block.

    Yields:
        The server, which listens.
    """
    process = os.getpid()
    with ExitStack() as stack:
        if state is None:
            state = stack.enter_context(temporary_folder())
        service = stack.enter_context(closing(Service(models, Path(state), limits=limits, workers=workers)))
        service.prepare()
        server = stack.enter_context(Server(service, host=host, port=port))
        thread = threading.Thread(target=server.serve_forever, name="keywright-serve", daemon=True)
        thread.start()
        stack.callback(thread.join)
        stack.callback(server.shutdown)
        try:
            yield server
        finally:
            if process != os.getpid():
                # The threads are its parent's, and so are the processes and the folder.
                stack.pop_all()
