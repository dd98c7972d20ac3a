"""The training stage: from a recipe to a run."""
