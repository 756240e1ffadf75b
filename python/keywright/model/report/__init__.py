"""What a compiled model costs, and how closely it follows the model."""
