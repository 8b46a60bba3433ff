"""Agreement on boxes and masks, uncertainty of segmentations, near duplicates; nothing in the core imports it."""
