"""Reports: they only read run directories and records, and never compute a verdict."""
