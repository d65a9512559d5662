"""The lowest layer, which every other package may use: array types, argument checks and atomic file writes."""
