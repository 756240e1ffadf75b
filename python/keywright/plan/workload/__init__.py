"""What is planned: the key switches of a workload, written by hand or read from a compiled network."""
