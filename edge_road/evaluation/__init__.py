"""Judges any predictor with the same code: measures, perturbations, reports."""
