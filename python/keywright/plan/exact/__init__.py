"""Plans that are proven: the mixed-integer program of small workloads, and what no plan is below."""
