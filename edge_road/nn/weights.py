"""Weights from safetensors files or the hubs, loaded whole or not at all; nothing is ever unpickled."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import timm
from huggingface_hub import hf_hub_download
from safetensors import SafetensorError
from safetensors.torch import load
from torch import Tensor, nn
from torchvision import models

from edge_road.errors import ConfigError
from edge_road.nn.backbone import TORCHVISION, Backbone

Tensors = Mapping[str, Tensor]
_NAMED_PER_KIND = 3
_OF_A_RUN = "feature_layer.weight"
"""only a whole RoadModel has this"""
_PICKLED = (b"PK\x03\x04", b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05")
_LOCAL_FILE = "give a local file: --weights FILE.safetensors, or --weights none to start from scratch"


def read_tensors(path: Path) -> Tensors:
    return parse_tensors(read_bytes(path), where=path)


def read_bytes(path: Path) -> bytes:
    try:
        if path.exists() and not (path.is_file() or path.is_dir()):  # a pipe or a device may never end
            raise OSError(None, "not a plain file")
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(
            "cannot read the weights",
            where=path,
            got=error.strerror,
            expected="a .safetensors file; in a recipe also none or hub",
        ) from None


def parse_tensors(content: bytes, *, where: object) -> Tensors:
    try:
        tensors: Tensors = load(content)
    except (SafetensorError, KeyError, ValueError) as error:
        pickled = content.startswith(_PICKLED)
        raise ConfigError(
            "this is not a whole safetensors file",
            where=where,
            got="a pickled checkpoint, which could run code" if pickled else f"{len(content)} bytes: {error}",
            expected="a .safetensors file",
            fix="convert it to safetensors where you trust it" if pickled else "copy or download it again",
        ) from None
    return tensors


def hub_tensors(backbone: str) -> Tensors:
    """The library's own pretrained weights; downloaded once, then cached by the library."""
    try:
        if backbone.startswith(TORCHVISION):
            return _torchvision_tensors(backbone.removeprefix(TORCHVISION))
        return _timm_tensors(backbone)
    except ConfigError:
        raise
    except Exception as error:  # each hub library, and what it uses for HTTP, has its own tree
        raise ConfigError(
            "the pretrained weights could not be fetched",
            where=f"model.weights = hub, tried {_source(backbone)}",
            got=f"{type(error).__name__}: {error}",
            fix=_LOCAL_FILE,
        ) from None


def drop_head(tensors: Tensors, backbone: Backbone) -> Tensors:
    """Without the ImageNet classifier, which our backbone does not have, or the layers of a run of ours."""
    if _OF_A_RUN in tensors:
        inside = "backbone."
        return {name.removeprefix(inside): t for name, t in tensors.items() if name.startswith(inside)}
    ours = backbone.module.state_dict()
    prefixes = tuple(f"{layer}." for layer in backbone.head)
    return {name: t for name, t in tensors.items() if name in ours or not name.startswith(prefixes)}


def load_strictly(module: nn.Module, tensors: Tensors, *, where: object, model: str) -> None:
    """All tensors or none: every name and shape must fit before one is written."""
    ours = module.state_dict()
    problems = _mismatches(ours, tensors)
    if problems:
        raise ConfigError(
            "the weights are not those of this model",
            where=where,
            got="; ".join(problems),
            expected=f"the {len(ours)} tensors of {model}",
            fix="name the network of these weights as model.backbone, or give other weights",
        )
    if damaged := [name for name, tensor in tensors.items() if not bool(tensor.isfinite().all())]:
        raise ConfigError(
            "the weights hold values that are not finite numbers",
            where=where,
            got=_first(damaged),
            fix="copy or download the file again",
        )
    module.load_state_dict(tensors)


def _mismatches(ours: Tensors, found: Tensors) -> list[str]:
    shared = [name for name in ours if name in found and ours[name].shape != found[name].shape]
    kinds = {
        "wrong shape": [f"{n} {_shape(found[n])} instead of {_shape(ours[n])}" for n in shared],
        "missing": [name for name in ours if name not in found],
        "unexpected": sorted(name for name in found if name not in ours),
    }
    return [f"{kind}: {_first(names)}" for kind, names in kinds.items() if names]


def _first(names: list[str]) -> str:
    more = len(names) - _NAMED_PER_KIND
    return ", ".join(names[:_NAMED_PER_KIND]) + (f" and {more} more" if more > 0 else "")


def _shape(tensor: Tensor) -> str:
    return "x".join(map(str, tensor.shape)) or "scalar"


def _timm_tensors(name: str) -> Tensors:
    repository = _timm_repository(name)
    if repository is None:
        raise ValueError("no weights are published for it")
    return read_tensors(Path(hf_hub_download(repository, "model.safetensors")))


def _torchvision_tensors(name: str) -> Tensors:
    published = models.get_model_weights(name).DEFAULT
    tensors: Tensors = published.get_state_dict(progress=False, check_hash=True, weights_only=True)
    return tensors


def _timm_repository(name: str) -> str | None:
    published = timm.get_pretrained_cfg(name)
    return published.hf_hub_id if published else None


def _source(backbone: str) -> str:
    if backbone.startswith(TORCHVISION):
        return str(models.get_model_weights(backbone.removeprefix(TORCHVISION)).DEFAULT.url)
    return f"{_timm_repository(backbone)} on the Hugging Face hub"
