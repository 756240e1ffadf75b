"""A model as a service holds it, and what its clients read of it: manifest and framing."""
