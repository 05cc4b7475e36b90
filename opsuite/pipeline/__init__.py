"""One case through one flow, stage by stage."""
