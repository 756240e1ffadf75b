"""Jobs, and their dispatch to workers."""
