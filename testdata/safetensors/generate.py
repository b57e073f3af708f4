"""Writes python.safetensors. Needs safetensors and numpy; the versions are in README.md."""

import pathlib

import numpy as np
from safetensors.numpy import save_file


def bits32(*words):
    return np.array(words, np.uint32).view(np.float32)


def bits64(*words):
    return np.array(words, np.uint64).view(np.float64)


save_file(
    {
        "dense/W": np.array([[1.5, -2.25, 3], [0.1, 1e-45, 3.4028235e38]], np.float32),
        "dense/W/adam/m": np.array([1 / 3, 5e-324, 1.7976931348623157e308]),
        # two NaNs with payloads (the first signalling), -0, Inf, -Inf
        "special32": bits32(0x7F800001, 0xFFC12345, 0x80000000, 0x7F800000, 0xFF800000),
        "special64": bits64(0x7FF0000000000001, 0xFFF8000000012345, 1 << 63, 0x7FF << 52, 0xFFF << 52),
        "global_step": np.array(7, np.int64),
        "range": np.array([-(2**63), -1, 2**63 - 1], np.int64),
        "empty": np.zeros((2, 0, 3), np.float32),
        "größe \"µ\"": np.array(0.5),
    },
    pathlib.Path(__file__).with_name("python.safetensors"),
    metadata={"format": "1 \"ü\""},
)
