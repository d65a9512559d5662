"""Moves: short searches from a point, which several arms share."""
