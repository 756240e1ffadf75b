"""What key switches and operations take: the cost model, its calibration to a machine, budgets of noise."""
