"""Minimax polynomials for the sign, which encrypted values and compiled networks share."""
