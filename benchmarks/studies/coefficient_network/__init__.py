"""ConvFHE's networks on encrypted images."""
