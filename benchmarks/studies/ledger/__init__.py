"""The papers' claims, each with a verdict and the record that it rests on."""
