"""Randomness: Philox, the families of directions, and the compiled loops under them."""
