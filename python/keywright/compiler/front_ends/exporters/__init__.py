"""Exports models of other libraries to ONNX, one file for each, through the exporters of these libraries."""
