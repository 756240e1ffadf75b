"""Programs of the planner from published lists of rotations and from compiled networks."""
