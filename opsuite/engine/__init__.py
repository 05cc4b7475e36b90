"""Many cases: planning them, and running them on workers."""
