"""What the daemon's page and the fleet's have in common: who may ask, how to log in, the server, the look."""
