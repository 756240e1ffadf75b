"""Settings that clients and server of this app share."""

from keywright.federated import Encoding

IMAGES = 60_000


def encoding(clients: int) -> Encoding:
    """Weights stay below 4, and a client has a share of the images."""
    return Encoding(bound=4.0, max_clients=max(clients, 2), max_weight=IMAGES // clients + 2)
