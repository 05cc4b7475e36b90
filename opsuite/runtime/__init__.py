"""WHERE a lowered program runs."""
