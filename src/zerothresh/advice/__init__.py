"""What to run on a problem, by theory and by practice."""
