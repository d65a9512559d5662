"""Methods that are one generator function: what they see, and how a run of one is kept."""
