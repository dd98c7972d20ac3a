"""Ultralytics' classification augmentation on decoded pictures: images a second, in the calling thread.

Runs in the peers' environment: PICTURES.npy SIZE BATCH PASSES
"""

from __future__ import annotations

import json
import sys
import time

import cv2
import numpy as np
import torch
from PIL import Image
from ultralytics.data.augment import classify_augmentations


def main(path: str, size: str, batch: str, passes: str) -> None:
    """Crop, flip and colour jitter: their pipeline without its drawn policies."""
    torch.set_num_threads(1)
    images_NHWC = np.load(path)[..., ::-1].copy()  # BGR, as they read files
    augment = classify_augmentations(size=int(size), scale=(0.5, 1.0), hsv_h=0.0, hsv_s=0.3, hsv_v=0.3)

    def one_pass() -> None:
        for start in range(0, len(images_NHWC), int(batch)):
            group = images_NHWC[start : start + int(batch)]
            torch.stack([augment(Image.fromarray(cv2.cvtColor(i, cv2.COLOR_BGR2RGB))) for i in group])

    one_pass()
    took_s = []
    for _ in range(int(passes)):
        began_s = time.perf_counter()
        one_pass()
        took_s.append(time.perf_counter() - began_s)
    print(json.dumps({"seconds": took_s}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
