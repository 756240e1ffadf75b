"""Operators on the pixels of images: convolutions, pools, and the windows that both slide."""
