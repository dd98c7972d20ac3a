"""Methods trained alike and judged alike, in the shape of the papers' tables."""
