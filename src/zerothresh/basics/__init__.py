"""What everything else may use: array types, checks of arguments, and files that are written whole."""
