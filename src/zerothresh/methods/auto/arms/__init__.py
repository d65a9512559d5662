"""Arms: strategies that compete for the budget, each with one idea."""
