"""The forms that a user's function may have."""
