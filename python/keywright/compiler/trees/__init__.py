"""Tree ensembles as programs: bins of features, regions of leaves, the polynomial of a path, the last step."""
