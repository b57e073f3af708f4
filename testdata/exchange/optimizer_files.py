"""Saves and loads the state of torch's and Keras' optimizers as safetensors files, in the layout of package solvers/exchange."""

import json

import numpy as np
from safetensors.numpy import save_file
from safetensors import safe_open


def _read(path):
    with safe_open(path, "numpy") as f:
        return {k: f.get_tensor(k) for k in f.keys()}, f.metadata() or {}


def save_torch(optimizer, names, path):
    """names are those of the parameters, in the order in which the optimizer has them."""
    d = optimizer.state_dict()
    tensors = {
        f"state.{i}.{key}": np.array(v, order="C")
        for i, state in d["state"].items()
        for key, v in state.items()
        if v is not None
    }
    metadata = {"param_groups": json.dumps(d["param_groups"]), "names": json.dumps(dict(enumerate(names)))}
    save_file(tensors, path, metadata)


def load_torch(optimizer, path):
    import torch

    tensors, metadata = _read(path)
    d = optimizer.state_dict()
    for key, v in tensors.items():
        _, i, name = key.split(".", 2)
        d["state"].setdefault(int(i), {})[name] = torch.from_numpy(v)
    if "param_groups" in metadata:
        for group, saved in zip(d["param_groups"], json.loads(metadata["param_groups"]), strict=True):
            group.update(saved)
    optimizer.load_state_dict(d)


def save_keras(optimizer, names, path):
    """names are those of the trainable variables, in the order of build."""
    tensors = {}
    optimizer.save_own_variables(tensors)
    tensors = {k: np.array(v, order="C") for k, v in tensors.items()}
    tensors["0"] = tensors["0"].astype(np.int64)
    save_file(tensors, path, {"names": json.dumps(dict(enumerate(names)))})


def load_keras(optimizer, path):
    """The optimizer must have been built."""
    optimizer.load_own_variables(_read(path)[0])
