"""The forms that a user's objective function may have."""
