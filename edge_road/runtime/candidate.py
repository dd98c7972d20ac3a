"""The process that tries a new bundle: verified, self-tested, then asked about live frames; it may crash."""

from __future__ import annotations

import os
import socket

import numpy as np

from edge_road.errors import EdgeRoadError
from edge_road.frames import Frame
from edge_road.logs import set_up_logging
from edge_road.runtime.evidence import Evidence, Failed, Record
from edge_road.runtime.link import Setup, WorkerEnd
from edge_road.runtime.model import facts, load_model
from edge_road.runtime.perception import Perception, perception_of
from edge_road.runtime.worker_limits import limit_ourselves

LARGEST_RECORD_BYTES = 64 * 1024
NICENESS = 5
"""the model in charge comes first"""


class Question(Record):
    """A frame in the shared memory, ready to be judged."""

    number: int
    captured_mono_ns: int
    height: int
    width: int
    obstructed: tuple[bool, ...]


def answer(channel: socket.socket, memory: int, setup: Setup) -> None:
    """Judge one frame after the other until nobody asks any more."""
    model = load_model(setup.vehicle)
    perception = perception_of(setup.vehicle, model)
    channel.setblocking(True)
    channel.send(facts(model).model_dump_json().encode())
    while record := channel.recv(LARGEST_RECORD_BYTES):
        question = Question.model_validate_json(record)
        channel.send(_judged(perception, question, memory).model_dump_json().encode())


def _judged(perception: Perception, question: Question, memory: int) -> Evidence:
    shape = (question.height, question.width, 3)
    content = os.pread(memory, question.height * question.width * 3, 0)
    pixels = np.frombuffer(content, np.uint8).reshape(shape)
    frame = Frame(pixels, question.number, question.captured_mono_ns)
    return perception.judge(perception.view_of_checked(frame, question.obstructed))


def main(descriptors: list[int]) -> int:
    descriptor, memory = descriptors
    set_up_logging()
    os.nice(NICENESS)
    channel = socket.socket(fileno=descriptor)
    try:
        setup = WorkerEnd(channel).receive_setup()
        limit_ourselves(setup.vehicle.worker)
        answer(channel, memory, setup)
    except EdgeRoadError as error:
        channel.send(Failed.because(error).model_dump_json().encode())
        return error.exit_code
    except ConnectionError:
        return 1
    return 0
