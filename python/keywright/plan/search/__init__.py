"""Plans of large workloads: searches over key sets, and the planner that joins every way of planning."""
