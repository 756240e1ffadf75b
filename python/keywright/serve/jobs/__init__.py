"""Evaluations that clients have asked for, and their queue."""
