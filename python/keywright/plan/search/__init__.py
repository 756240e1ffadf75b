"""Plans of large workloads: searches over key sets, and the planner that combines all methods."""
