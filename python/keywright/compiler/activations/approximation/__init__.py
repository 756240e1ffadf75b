"""Polynomial approximations: single polynomials, compositions that approximate the sign, and their names."""
