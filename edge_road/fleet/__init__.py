"""Many vehicles on one page: listens to a broker, trusts nothing stale or damaged, keeps what happened."""
