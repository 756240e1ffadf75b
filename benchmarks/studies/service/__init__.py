"""A service of many tenants under load: on this machine, on simulated machines, and while processes die."""
