"""The service as an ASGI application, and the server that runs it."""
