"""What runs compiled networks, on ciphertexts and in clear, and compares and times them."""
