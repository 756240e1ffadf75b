"""Time, memory and labels of encrypted networks."""
