"""The network during compilation: linear maps, sums, products and functions, and their exact rewriting."""
