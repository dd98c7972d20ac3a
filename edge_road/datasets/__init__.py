"""Road pictures with labels and splits: folders, RSCD, rendered scenes."""
