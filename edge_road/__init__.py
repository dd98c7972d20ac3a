"""edge_road: from road photographs to a small, robust road-condition classifier in a vehicle."""

__version__ = "0.1.0"
