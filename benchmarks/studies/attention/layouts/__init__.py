"""Layouts and orders of the products of attention, counted."""
