"""Settings without the camera's password: digests and recordings leave the vehicle."""

from __future__ import annotations

from edge_road.config import settings_digest
from edge_road.logs import safe_text
from edge_road.runtime.vehicle import Vehicle
from edge_road.runtime.vehicle_sources import MjpegSource, RtspSource


def without_password(vehicle: Vehicle) -> Vehicle:
    source = vehicle.source
    if not isinstance(source, (RtspSource, MjpegSource)):
        return vehicle
    return vehicle.model_copy(update={"source": source.model_copy(update={"url": safe_text(source.url)})})


def vehicle_digest(vehicle: Vehicle) -> str:
    """The same for every password: a digest of it could be guessed at."""
    return settings_digest(without_password(vehicle))
