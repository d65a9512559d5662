"""The feasible set: bounds, hard thresholding and other projections, and the best subset of a quadratic."""
