"""The paper's experiments: their settings, their runs, and the reports with a verdict on each claim."""
