"""Divides a model into the client's first steps, what is encrypted, and the client's last steps."""
