"""Reports as folders that stand alone: an HTML page, tables, figures and verdicts. Nothing here knows an experiment."""
