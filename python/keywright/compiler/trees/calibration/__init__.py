"""Comparisons of an ensemble with calibration data: the range of thresholds, and the effect of rounding."""
