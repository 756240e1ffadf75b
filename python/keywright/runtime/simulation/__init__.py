"""Predicts the error of encrypted runs: runs in the clear with the errors that the engine predicts."""
