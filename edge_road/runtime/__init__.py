"""The vehicle stage: from camera frames to road states."""
