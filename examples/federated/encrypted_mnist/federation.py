"""What clients and server of this app agree on."""

from keywright.federated import Encoding

MAX_SAMPLES = 60_000


def encoding(clients: int) -> Encoding:
    """Weights stay below 4; 24 bits are the precision of float32."""
    return Encoding(bound=4.0, bits=24, max_clients=max(clients, 2), max_weight=MAX_SAMPLES)
