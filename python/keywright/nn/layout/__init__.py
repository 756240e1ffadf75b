"""Which slot of which ciphertext an element is in, and linear maps between layouts as diagonals."""
