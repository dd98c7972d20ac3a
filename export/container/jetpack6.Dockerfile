# JetPack 6: Ubuntu 22.04, Python 3.10, CUDA 12.6, TensorRT 10.3.
# Not run here: see README.md beside this file.
ARG BASE=nvcr.io/nvidia/l4t-jetpack:r36.4.0
FROM ${BASE}

# TensorRT comes with the base image, GStreamer and a GStreamer-enabled OpenCV from the system.
RUN apt-get update && apt-get install -y --no-install-recommends \
      python3-venv python3-opencv python3-gi gstreamer1.0-tools \
      gstreamer1.0-plugins-base gstreamer1.0-plugins-good gstreamer1.0-plugins-bad gstreamer1.0-libav \
    && rm -rf /var/lib/apt/lists/*

# A venv that sees the system's TensorRT and OpenCV.
RUN python3 -m venv --system-site-packages /opt/edge-road
ENV PATH=/opt/edge-road/bin:$PATH

WORKDIR /opt/edge-road-src
COPY pyproject.toml README.md LICENSE constraints.txt ./
COPY edge_road ./edge_road
# The package links to these.
COPY training/recipes ./training/recipes
COPY export/targets ./export/targets
# Everything of the vehicle part but OpenCV, which a wheel without GStreamer would hide. The system's
# OpenCV was compiled for numpy 1, so that pin is left out. TensorRT cannot be tried yet: it needs libraries
# that the nvidia runtime mounts when a container starts.
RUN grep -v '^numpy' constraints.txt > /tmp/constraints.txt \
    && pip install --no-cache-dir -c /tmp/constraints.txt \
      av cryptography onnx onnxruntime paho-mqtt prometheus-client python-can starlette uvicorn \
      pydantic rich tomli tomli-w "numpy>=1.26,<2" \
    && pip install --no-cache-dir --no-deps . \
    && python -c "import cv2, edge_road.backends.trt"

RUN useradd --system --create-home --groups video road && install -d -o road -g road /var/lib/edge_road
USER road
WORKDIR /home/road
# Events outlive the container in a volume; the lock need not.
ENV EDGE_ROAD_HOME=/home/road STATE_DIRECTORY=/var/lib/edge_road RUNTIME_DIRECTORY=/tmp
ENTRYPOINT []
CMD ["edge-road", "run", "--vehicle", "/vehicle.toml"]
