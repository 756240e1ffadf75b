"""Tree ensembles as programs: bins of features, regions of leaves, a polynomial of paths, the last step."""
