"""A model as a service holds it, and the parts that its clients read: manifest and framing."""
