"""Shared code of studies and peers: setting up programs, running them in turns, timing, records, tables,
pictures."""
