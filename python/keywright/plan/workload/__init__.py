"""Workloads of key switches, written by hand or read from a compiled network."""
