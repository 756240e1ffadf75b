"""Figures of KDS and ARK that planning answers: nothing is encrypted."""
