"""Tables and pictures that commands print."""
