"""Memory of a process that evaluates: predicted part by part, and planned together with the keys."""
