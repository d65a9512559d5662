"""One run as a state machine that knows nothing of files."""
