"""What an encrypted run will be off by: runs in the clear with the errors that the engine predicts."""
