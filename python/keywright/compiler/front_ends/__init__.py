"""Reads models, one file for each source format, and adds their operators to a graph."""

from .model_file import load_model, sample_shape

__all__ = ["load_model", "sample_shape"]
