"""What frameworks export, one file for each: run in their own environments."""
