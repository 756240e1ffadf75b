"""Costs of key switches and operations: the cost model, its calibration to a machine, noise budgets."""
