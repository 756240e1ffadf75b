"""What a model is read from, one file for each source, and what its operators become in a graph."""
