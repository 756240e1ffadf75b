"""What a service of many tenants does under load: on this machine, on simulated ones, and when things die."""
