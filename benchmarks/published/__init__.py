"""Workloads of the planner from the rotation lists of published networks: one parser for each list."""
