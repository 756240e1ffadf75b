"""Bits that clients encrypt, and the masks of softmaxes that they are."""
