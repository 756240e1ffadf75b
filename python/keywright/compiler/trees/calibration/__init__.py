"""What calibration data say of an ensemble: where thresholds are beside them, and what rounding changes."""
