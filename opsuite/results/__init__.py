"""What a run leaves behind: records, and the directory that holds them."""
