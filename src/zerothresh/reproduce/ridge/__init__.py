"""The paper's ridge regression experiments."""
