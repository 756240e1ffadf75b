"""Bootstrapping in the KDS paper (Joo, Ha, Oh and Paek, Sensors 25(14):4320, 2025), measured again."""
