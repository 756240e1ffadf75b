"""Memory of an evaluating process: predicted part by part, and planned together with the keys."""
