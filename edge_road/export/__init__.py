"""The export stage: from a run to a bundle."""
