"""Activation functions and the polynomials that approximate them: fitting, error and depth."""
