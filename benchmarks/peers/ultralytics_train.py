"""Ultralytics' classification trainer, with all its defaults, on the network that everybody gets.

Runs in the peers' environment with one JSON object: data (train/, val/ with a folder for each class),
backbone, weights, classes, size, batch, epochs, threads, seed, home, out. Writes the best epoch's
weights to `out` and prints the seconds of every epoch's training and the best validation accuracy.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor, nn
from ultralytics.models.yolo.classify import ClassificationTrainer
from ultralytics.nn.tasks import ClassificationModel

from benchmarks.peers.network import Network, tensors_of


class Head(nn.Module):
    """The network as the single layer of an Ultralytics model: logits to learn, probabilities to judge."""

    f, i, type, np = -1, 0, "network", 0

    def __init__(self, network: Network) -> None:
        super().__init__()
        self.network = network

    def forward(self, images_BCHW: Tensor) -> Any:
        logits_BC = self.network(images_BCHW)
        return logits_BC if self.training else (logits_BC.softmax(1), logits_BC)


class Trainer(ClassificationTrainer):  # type: ignore[misc]
    """Keeps the weights of the best epoch in memory instead of pickling whole models."""

    def __init__(self, wishes: dict[str, Any]) -> None:
        self.wishes, self.best_accuracy = wishes, 0.0
        self.kept: dict[str, Tensor] = {}
        self.epoch_s: list[float] = []
        overrides = {
            "model": "yolo11n-cls.yaml",
            "data": wishes["data"],
            "imgsz": wishes["size"],
            "batch": wishes["batch"],
            "epochs": wishes["epochs"],
            "workers": 1,
            "device": "cpu",
            "project": wishes["home"],
            "seed": wishes["seed"],
            "plots": False,
            "verbose": False,
            "exist_ok": True,
        }
        super().__init__(overrides=overrides)
        self.add_callback("on_train_epoch_start", lambda _: self.epoch_s.append(-time.perf_counter()))
        self.add_callback("on_train_epoch_end", lambda _: self._stop_clock())

    def get_model(self, cfg: Any = None, weights: Any = None, verbose: bool = False) -> ClassificationModel:
        wishes = self.wishes
        model = ClassificationModel("yolo11n-cls.yaml", nc=wishes["classes"], verbose=False)
        network = Network(wishes["backbone"], wishes["classes"], weights=wishes["weights"])
        model.model, model.save = nn.Sequential(Head(network)), []
        return model

    def save_model(self) -> bool:
        if self.best_fitness == self.fitness:
            self.kept = tensors_of(self.ema.ema.model[0].network)
            self.best_accuracy = float(self.metrics["metrics/accuracy_top1"])
        return True

    def final_eval(self) -> None:
        """We judge elsewhere."""

    def _stop_clock(self) -> None:
        self.epoch_s[-1] += time.perf_counter()


def main(wishes: dict[str, Any]) -> None:
    torch.set_num_threads(wishes["threads"])
    trainer = Trainer(wishes)
    trainer.train()
    save_file(trainer.kept, wishes["out"])
    print(json.dumps({"epoch_s": trainer.epoch_s, "accuracy": trainer.best_accuracy}), flush=True)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
