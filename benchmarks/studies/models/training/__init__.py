"""Trains the models of `studies.models`, each in its framework's environment, without Keywright."""
