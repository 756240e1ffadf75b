"""Settings that clients and server of the test's app share."""

from keywright.federated import Encoding

ENCODING = Encoding(bound=4.0, max_clients=3, max_weight=100)
CLIENTS, THRESHOLD = 3, 2
