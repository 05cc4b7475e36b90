"""Benchmarks: each prints a ratio of two sides measured in one run."""
