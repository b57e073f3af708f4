"""The writer of the golden files, and the options of the rules in them.

Rule and option names are the names this library uses; all options are written
out.
"""

import json
import os

import numpy as np

import problem

# Summation order, fused kernels and pow differ between libraries.
WIDER_TOLERANCE = {"float64": 1e-10, "float32": 2e-5}

# The options of each rule, with defaults.
OPTIONS = {
    "momentum": {
        "learning_rate": 0.01,
        "momentum": 0.9,
        "nesterov": False,
        "dampening": 0.0,
        "rate_inside": False,
    },
    "nesterov": {
        "learning_rate": 0.01,
        "momentum": 0.9,
        "nesterov": True,
        "dampening": 0.0,
        "rate_inside": False,
    },
    "sgdw": {
        "learning_rate": 0.001,
        "momentum": 0.0,
        "nesterov": False,
        "weight_decay": 0.0,
    },
    "rmsprop": {
        "learning_rate": 0.001,
        "rho": 0.9,
        "momentum": 0.0,
        "epsilon": 1e-8,
        "centered": False,
        "epsilon_inside": False,
        "rate_outside": False,
        "initial_value": 0.0,
        "max_scaling": 0.0,
    },
    "adagrad": {
        "learning_rate": 0.01,
        "initial_accumulator_value": 0.0,
        "epsilon": 1e-10,
        "epsilon_inside": False,
        "rate_decay": 0.0,
    },
    "adadelta": {"learning_rate": 1.0, "rho": 0.9, "epsilon": 1e-6},
    "adam": {
        "learning_rate": 0.001,
        "beta1": 0.9,
        "beta2": 0.999,
        "epsilon": 1e-8,
        "epsilon_hat": False,
        "amsgrad": False,
        "max_corrected": False,
    },
    "adamw": {
        "learning_rate": 0.001,
        "beta1": 0.9,
        "beta2": 0.999,
        "epsilon": 1e-8,
        "epsilon_hat": False,
        "amsgrad": False,
        "max_corrected": False,
        "weight_decay": 0.01,
        "rate_independent": False,
    },
    "adamax": {
        "learning_rate": 0.002,
        "beta1": 0.9,
        "beta2": 0.999,
        "epsilon": 1e-8,
        "epsilon_inside_max": False,
    },
    "nadam": {
        "learning_rate": 0.002,
        "beta1": 0.9,
        "beta2": 0.999,
        "epsilon": 1e-8,
        "momentum_decay": 0.004,
        "form": "scheduled",
    },
    "radam": {
        "learning_rate": 0.001,
        "beta1": 0.9,
        "beta2": 0.999,
        "epsilon": 1e-8,
        "sma_threshold": 5.0,
        "epsilon_hat": False,
        "amsgrad": False,
        "weight_decay": 0.0,
        "total_steps": 0,
        "warmup_proportion": 0.1,
        "min_learning_rate": 0.0,
    },
    "adabelief": {
        "learning_rate": 0.001,
        "beta1": 0.9,
        "beta2": 0.999,
        "epsilon": 1e-14,
        "amsgrad": False,
        "rectify": True,
        "sma_threshold": 5.0,
        "total_steps": 0,
        "warmup_proportion": 0.1,
        "min_learning_rate": 0.0,
        "literal_warmup": False,
        "weight_decay": 0.0,
        "decay": "rate",
        "epsilon_hat": False,
        "degenerated_to_sgd": True,
        "epsilon_inner": -1.0,
    },
    "ftrl": {
        "learning_rate": 0.001,
        "learning_rate_power": -0.5,
        "initial_accumulator_value": 0.1,
        "l1": 0.0,
        "l2": 0.0,
        "l2_shrinkage": 0.0,
        "beta": 0.0,
    },
    "lion": {
        "learning_rate": 0.001,
        "beta1": 0.9,
        "beta2": 0.99,
        "weight_decay": 0.0,
    },
    "lamb": {
        "learning_rate": 0.001,
        "beta1": 0.9,
        "beta2": 0.999,
        "epsilon": 1e-6,
        "weight_decay": 0.0,
    },
    "adafactor": {
        "learning_rate": 0.001,
        "beta2_decay": -0.8,
        "epsilon1": 1e-30,
        "epsilon2": 1e-3,
        "clip_threshold": 1.0,
    },
    "muon": {
        "learning_rate": 0.001,
        "momentum": 0.95,
        "nesterov": True,
        "ns_steps": 5,
        "a": 3.4445,
        "b": -4.775,
        "c": 2.0315,
        "rms_rate": 0.2,
        "weight_decay": 0.004,
        "adam_learning_rate_ratio": 1.0,
        "adam_beta1": 0.9,
        "adam_beta2": 0.999,
        "adam_weight_decay": 0.004,
        "epsilon": 1e-7,
    },
    "schedule_free_adamw": {
        "learning_rate": 0.0025,
        "beta1": 0.9,
        "beta2": 0.999,
        "epsilon": 1e-8,
        "warmup_steps": 0,
        "weight_decay": 0.0,
    },
    "novograd": {
        "learning_rate": 0.001,
        "beta1": 0.9,
        "beta2": 0.999,
        "epsilon": 1e-7,
        "weight_decay": 0.0,
        "grad_averaging": False,
        "amsgrad": False,
    },
    "yogi": {
        "learning_rate": 0.01,
        "beta1": 0.9,
        "beta2": 0.999,
        "epsilon": 1e-3,
        "l1": 0.0,
        "l2": 0.0,
        "initial_accumulator_value": 1e-6,
        "initial_momentum": 0.0,
        "activation": "sign",
        "epsilon_hat": True,
    },
    "cocob": {"alpha": 100.0},
}


def _flat(params, arrays):
    """One flat list of floats per parameter, row-major."""
    lists = []
    for (_, shape), x in zip(params, arrays, strict=True):
        x = np.asarray(x)
        if x.dtype != np.float64 or x.shape != tuple(shape):
            raise ValueError(f"got {x.dtype} {x.shape}, want float64 {shape}")
        if not np.isfinite(x).all():
            raise ValueError("value is not finite")
        lists.append(x.reshape(-1).tolist())
    return lists


def _compact(value):
    return json.dumps(value, separators=(",", ":"), allow_nan=False)


def _steps(steps, indent):
    """A JSON array with one step per line."""
    pad = " " * indent
    return "[\n" + ",\n".join(pad + " " + _compact(s) for s in steps) + "\n" + pad + "]"


def write(name, source, generator, results, params=None, initial=None, gradients=None):
    """Writes the golden file <name>.json, next to this script.

    results has one (row name, reference, rules, values) tuple per row, where
    values has one list of arrays per step. A fifth item, if there is one, is
    the tolerance of that row. The problem is that of problem.py unless another
    is given. Floats are written in the shortest form that reads back as the
    same float64.
    """
    if params is None:
        params = problem.PARAMS
        initial, gradients = problem.problem()
    head = [
        {"name": param, "shape": list(shape), "value": value}
        for (param, shape), value in zip(params, _flat(params, initial), strict=True)
    ]

    out = ["{\n"]
    out.append(f' "source": {_compact(source)},\n')
    out.append(f' "generator": {_compact(generator)},\n')
    out.append(' "problem": {\n')
    out.append(f'  "params": {_steps(head, 2)},\n')
    out.append(f'  "gradients": {_steps([_flat(params, g) for g in gradients], 2)}\n')
    out.append(" },\n")
    out.append(' "rows": [\n')
    for i, (row, reference, rules, values, *rest) in enumerate(results):
        (tolerance,) = rest or (WIDER_TOLERANCE,)
        if len(values) != len(gradients):
            raise ValueError(f"{row}: {len(values)} steps")
        out.append("  {\n")
        out.append(f'   "name": {_compact(row)},\n')
        out.append(f'   "reference": {_compact(reference)},\n')
        out.append(f'   "rules": {_compact(rules)},\n')
        out.append(f'   "tolerance": {_compact(tolerance)},\n')
        out.append(f'   "values": {_steps([_flat(params, v) for v in values], 3)}\n')
        out.append("  },\n" if i + 1 < len(results) else "  }\n")
    out.append(" ]\n}\n")

    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), name + ".json")
    with open(path, "w", encoding="utf-8", newline="\n") as f:
        f.write("".join(out))
