"""Reports that stand alone: pages, tables, figures, verdicts, and the folder that they are written to."""
