"""What happened, told at least once: events, and the store in which they wait for delivery."""
