"""Writes pipelines of scikit-learn as ONNX: imputers, encoders, tables, and several linear heads."""
