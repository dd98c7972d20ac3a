"""Somebody else's program: it knows a bundle's manifest and docs/export.md, and nothing of ours.

python bundle_consumer.py BUNDLE PRECISION pil|opencv PICTURE...  ->  JSON: logits of each picture
"""

import json
import sys
from pathlib import Path

import cv2
import numpy as np
import onnxruntime
from PIL import Image

bundle, precision, decoder = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
manifest = json.loads((bundle / "manifest.json").read_text())
settings, crop = manifest["preprocessing"], manifest["preprocessing"]["crop"]
height, width = settings["height"], settings["width"]
options = onnxruntime.SessionOptions()
options.add_session_config_entry("session.disable_quant_qdq", "1")
session = onnxruntime.InferenceSession(bundle / manifest["artefacts"][precision]["file"], options)
answers = []
for name in sys.argv[4:]:
    picture = np.array(Image.open(name).convert("RGB")) if decoder == "pil" else cv2.imread(name)[..., ::-1]
    rows, columns = picture.shape[:2]
    top, bottom = int(crop["top"] * rows), int(crop["bottom"] * rows)
    left, right = int(crop["left"] * columns), int(crop["right"] * columns)
    part = picture[top:bottom, left:right]
    if settings["fit"] == "cover":  # the centre, in the model's shape
        rows, columns = part.shape[:2]
        high, wide = min(rows, round(columns * height / width)), min(columns, round(rows * width / height))
        top, left = (rows - high) // 2, (columns - wide) // 2
        part = part[top : top + high, left : left + wide]
    part = np.ascontiguousarray(part)
    while settings.get("shrink") == "halves" and part.shape[0] >= 2 * height and part.shape[1] >= 2 * width:
        half = (part.shape[1] // 2, part.shape[0] // 2)
        part = cv2.resize(part, half, interpolation=cv2.INTER_AREA)
    shrinks = part.shape[0] > height or part.shape[1] > width
    part = cv2.resize(part, (width, height), interpolation=cv2.INTER_AREA if shrinks else cv2.INTER_LINEAR)
    answers.append(session.run(["logits"], {manifest["input_name"]: part[None]})[0][0].tolist())
print(json.dumps(answers))
