"""Cached encryption: the pool beside Chem, plain encryption and TenSEAL, and the figures of Chem's paper."""
