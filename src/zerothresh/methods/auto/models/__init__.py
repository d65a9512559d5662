"""Models: pure functions of data, which ask for nothing."""
