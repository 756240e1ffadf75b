"""Polynomials for functions: single ones, compositions that follow the sign, and how both are named."""
