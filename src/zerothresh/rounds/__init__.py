"""One round, pure: what a method asks for, the points that answer it, and what their values make of the search."""
