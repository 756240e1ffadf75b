"""Texts of the reasons why a model cannot be compiled, by what they are about."""
