"""Tree ensembles of other libraries, read as `keywright.compiler.trees.ensemble.Ensemble`."""
