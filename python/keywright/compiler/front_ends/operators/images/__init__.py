"""Operators on images: convolutions, pooling, and their sliding windows."""
