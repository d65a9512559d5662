"""Pure functions of measured outputs and Jacobians: nothing here asks for a run."""
