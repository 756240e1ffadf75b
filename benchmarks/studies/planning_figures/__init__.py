"""Figures of KDS and ARK that planning alone reproduces. Nothing is encrypted."""
