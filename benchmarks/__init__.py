"""One script per row of BENCHMARKS.md; each measures both sides in one run and prints their ratio."""
