"""The parameters of a model's programs: the choice of a preset, and the programs compiled for it."""
