"""`keywright[simulation]`: Flower's simulation engine can be imported, with what it needs."""

import flwr.simulation
import ray

print(f"Ray {ray.__version__}, {flwr.simulation.run_simulation.__name__}")
