"""Rendered roads: single scenes, RSCD-like patches and whole drives."""
