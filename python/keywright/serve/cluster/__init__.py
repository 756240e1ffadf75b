"""A service on many machines (``keywright[cluster]``): who gets a job, and replicas on Ray Serve."""
