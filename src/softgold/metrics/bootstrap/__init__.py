"""Bootstrap intervals and comparisons, blockwise and in constant memory."""
