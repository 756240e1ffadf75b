"""The folder of a model: names of its files, and reading them."""
