"""What clients and server of this app agree on."""

from keywright.federated import Encoding

IMAGES = 60_000


def encoding(clients: int) -> Encoding:
    """Weights stay below 4; 24 bits are the precision of float32. A client has a share of the images."""
    return Encoding(bound=4.0, bits=24, max_clients=max(clients, 2), max_weight=IMAGES // clients + 2)
