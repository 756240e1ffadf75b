"""What is planned: the key switches of a program, written by hand or read from a compiled network."""
