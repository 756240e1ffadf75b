"""The network as it is compiled: linear maps, sums, products and functions, and exact rewriting of them."""
