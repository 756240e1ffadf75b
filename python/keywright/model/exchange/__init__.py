"""What client and server exchange: messages, and the ciphertexts in them."""
