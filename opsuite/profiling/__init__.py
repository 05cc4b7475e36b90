"""Where the time of a case goes: stages, sub-stages, pattern builds, call stacks."""
