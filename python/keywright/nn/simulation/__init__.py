"""What an encrypted run of a program will be off by: a run in the clear with the errors that the engine predicts."""
