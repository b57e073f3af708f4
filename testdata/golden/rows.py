"""The rows of the golden files, and the writer for those files.

A row is one optimizer setup. Its rules are applied in order: a row with two
rules first clips the gradients and then takes the step. Rule and option names
are the names this library uses; all options are written out.
"""

import json
import os

import numpy as np

import problem

TOLERANCE = {"float64": 1e-12, "float32": 2e-6}


def _sgd(lr):
    return {"name": "sgd", "options": {"learning_rate": lr}}


def _momentum(lr, mu):
    return {"name": "momentum", "options": {"learning_rate": lr, "momentum": mu}}


def _nesterov(lr, mu):
    return {"name": "nesterov", "options": {"learning_rate": lr, "momentum": mu}}


def _adam(lr, beta1, beta2, eps):
    return {
        "name": "adam",
        "options": {
            "learning_rate": lr,
            "beta1": beta1,
            "beta2": beta2,
            "epsilon": eps,
        },
    }


def _adamw(lr, beta1, beta2, eps, wd):
    rule = _adam(lr, beta1, beta2, eps)
    rule["name"] = "adamw"
    rule["options"]["weight_decay"] = wd
    return rule


def _clip(max_norm):
    return {"name": "clip_by_global_norm", "options": {"max_norm": max_norm}}


# Name, rules, and the files the row belongs to.
#
# The clipping rows are not in torch.json: torch.nn.utils.clip_grad_norm_ adds
# 1e-6 to the norm. The Adam rows are not in keras.json: Keras adds epsilon
# before the bias correction of the second moment, which is another rule.
_ROWS = [
    ("sgd/lr-0.1", [_sgd(0.1)], "torch optax"),
    ("sgd/lr-0.003", [_sgd(0.003)], "torch optax"),
    ("momentum/mu-0.9", [_momentum(0.05, 0.9)], "torch optax"),
    ("momentum/mu-0.5", [_momentum(0.01, 0.5)], "torch optax"),
    ("nesterov/mu-0.9", [_nesterov(0.05, 0.9)], "torch optax"),
    ("nesterov/mu-0.5", [_nesterov(0.01, 0.5)], "torch optax"),
    ("adam/defaults", [_adam(0.001, 0.9, 0.999, 1e-8)], "torch optax"),
    ("adam/eps-1e-3", [_adam(0.01, 0.8, 0.99, 1e-3)], "torch optax"),
    ("adamw/wd-0.01", [_adamw(0.001, 0.9, 0.999, 1e-8, 0.01)], "torch optax"),
    ("adamw/wd-0.1", [_adamw(0.05, 0.9, 0.95, 1e-6, 0.1)], "torch optax"),
    ("clip-1.0/sgd", [_clip(1.0), _sgd(0.1)], "optax keras"),
    ("clip-1.0/momentum", [_clip(1.0), _momentum(0.05, 0.9)], "optax keras"),
    ("clip-0.5/adam", [_clip(0.5), _adam(0.01, 0.9, 0.999, 1e-8)], "optax"),
]


def rows(source):
    """Returns the (name, rules) pairs of the file <source>.json."""
    return [(name, rules) for name, rules, files in _ROWS if source in files.split()]


def _flat(arrays):
    """One flat list of floats per parameter, row-major."""
    lists = []
    for (_, shape), x in zip(problem.PARAMS, arrays, strict=True):
        x = np.asarray(x)
        if x.dtype != np.float64 or x.shape != shape:
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


def write(name, source, generator, results):
    """Writes the golden file <name>.json, next to this script.

    results has one (row name, reference, rules, values) tuple per row, where
    values has one list of arrays per step. Floats are written in the shortest
    form that reads back as the same float64.
    """
    initial, gradients = problem.problem()
    params = [
        {"name": param, "shape": list(shape), "value": value}
        for (param, shape), value in zip(problem.PARAMS, _flat(initial), strict=True)
    ]

    out = ["{\n"]
    out.append(f' "source": {_compact(source)},\n')
    out.append(f' "generator": {_compact(generator)},\n')
    out.append(' "problem": {\n')
    out.append(f'  "params": {_steps(params, 2)},\n')
    out.append(f'  "gradients": {_steps([_flat(g) for g in gradients], 2)}\n')
    out.append(" },\n")
    out.append(' "rows": [\n')
    for i, (row, reference, rules, values) in enumerate(results):
        if len(values) != problem.STEPS:
            raise ValueError(f"{row}: {len(values)} steps")
        out.append("  {\n")
        out.append(f'   "name": {_compact(row)},\n')
        out.append(f'   "reference": {_compact(reference)},\n')
        out.append(f'   "rules": {_compact(rules)},\n')
        out.append(f'   "tolerance": {_compact(TOLERANCE)},\n')
        out.append(f'   "values": {_steps([_flat(v) for v in values], 3)}\n')
        out.append("  },\n" if i + 1 < len(results) else "  }\n")
    out.append(" ]\n}\n")

    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), name + ".json")
    with open(path, "w", encoding="utf-8", newline="\n") as f:
        f.write("".join(out))
