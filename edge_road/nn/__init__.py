"""The network and its mathematics (torch)."""
