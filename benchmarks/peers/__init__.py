"""Programs that measure other libraries at the parameter sets of `sets.json`."""
