"""Networks run on ciphertexts under the key sets of KDS and under planned ones."""
