"""The costs of a compiled model, and how closely it follows the original model."""
