"""The machine of a measurement, and its clock."""
