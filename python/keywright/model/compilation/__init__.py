"""Compiles models: the public function, and the choice of parameters and batches."""
