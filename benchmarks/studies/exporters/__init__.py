"""Tests which operators can be read as the exporters of four frameworks write them, and in which opsets."""
