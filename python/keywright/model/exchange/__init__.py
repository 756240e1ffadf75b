"""Messages between client and server, and the ciphertexts in them."""
