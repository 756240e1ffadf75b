"""Cached encryption: the pool compared with Chem, plain encryption and TenSEAL, and the figures of Chem's
paper."""
