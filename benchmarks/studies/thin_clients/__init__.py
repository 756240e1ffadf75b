"""Boosted-deflation clients: the paper's ablation and its video benchmark, measured."""
