"""The feasible set: bounds, hard thresholding and projections, and the best subset of a quadratic."""
