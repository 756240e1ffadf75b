"""The encoder, its published weights, and sentences."""
