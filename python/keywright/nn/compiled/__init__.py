"""What a compiled network is made of: instructions, the key switches they take, and its file."""
