"""A Flower app: federated averaging of encrypted updates on handwritten digits."""
