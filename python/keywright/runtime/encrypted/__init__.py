"""Programs on ciphertexts."""
