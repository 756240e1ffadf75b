"""Pages of a record: tables, prose and pictures."""
