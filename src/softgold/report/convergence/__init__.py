"""The report of a label-convergence study."""
