"""Layouts: the slot and ciphertext of each element, and linear maps between layouts as diagonals."""
