"""Agreement of raters on boxes and masks, and label convergence."""
