"""Writes tf.json: trajectories with sparse gradients (IndexedSlices), in float64.

Of tf.compat.v1.train, RETURNN, tf.keras.optimizers.legacy and TensorFlow
Addons. The first gradient is a whole tensor, the others are rows; in the
sequence "twice" a step may name a row more than once.
"""

import inspect
import json
import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
sys.path.insert(0, "..")

import numpy as np
import tensorflow as tf
import tensorflow_addons as tfa

import tf_rows

v1 = tf.compat.v1
SHAPE = (5, 3)
rng = np.random.default_rng(7)
INITIAL = np.round(rng.normal(size=SHAPE), 3)
# Row 4 has a gradient in the first step only.
INDICES = {
    "once": [[1], [0, 3], [1, 2], [3], [0], [2, 1, 3], [1], [0, 2], [3], [1]],
    "twice": [
        [1, 1],
        [0, 3, 0],
        [1, 2],
        [3, 3, 3],
        [0],
        [2, 1, 2, 1],
        [1],
        [0, 2],
        [3, 0, 3],
        [1],
    ],
}


def numbers(*shape):
    return np.round(rng.normal(size=shape), 3).tolist()


STEPS = {
    name: [{"dense": numbers(*SHAPE)}]
    + [{"indices": at, "values": numbers(len(at), SHAPE[1])} for at in indices]
    for name, indices in INDICES.items()
}

# Python numbers in these libraries, whatever the dtype of the variables.
PLAIN = ("initial_accumulator_value", "decrease_factor")
NAMES = {
    "l1": "l1_regularization_strength",
    "l2": "l2_regularization_strength",
    "nesterov": "use_nesterov",
    "beta1": "beta_1",
    "beta2": "beta_2",
    "lambda": "lambda_",
}
LR = {"learning_rate": 0.1}
MU = LR | {"momentum": 0.9}
WD = LR | {"weight_decay": 0.1}
L1_L2 = LR | {"l1": 1 / 64, "l2": 1 / 32}

# Preset, the optimizer in the library, options.
ROWS = {
    "tf1": [
        ("gradientdescent", "GradientDescentOptimizer", LR),
        ("momentum", "MomentumOptimizer", MU),
        ("momentum", "MomentumOptimizer", MU | {"nesterov": True}),
        ("rmsprop", "RMSPropOptimizer", LR | {"momentum": 0.5}),
        ("rmsprop", "RMSPropOptimizer", LR | {"centered": True}),
        ("adagrad", "AdagradOptimizer", LR),
        ("adadelta", "AdadeltaOptimizer", LR | {"epsilon": 0.01}),
        ("adam", "AdamOptimizer", LR),
        ("ftrl", "FtrlOptimizer", L1_L2),
        ("proximaladagrad", "ProximalAdagradOptimizer", L1_L2),
        ("proximalgradientdescent", "ProximalGradientDescentOptimizer", L1_L2),
    ],
    "returnn": [
        ("customgradientdescent", "CustomGradientDescentOptimizer", LR),
        ("normalizedsgd", "NormalizedSGD", LR),
        (
            "neuraloptimizer1",
            "NeuralOptimizer1",
            LR | {"beta1": 0.9, "decrease_factor": 0.1},
        ),
        (
            "gradvariancescaled",
            "GradVarianceScaledOptimizer",
            LR | {"beta1": 0.9, "beta2": 0.7, "epsilon": 0.1},
        ),
        (
            "nadam",
            "NadamOptimizer",
            LR | {"beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8},
        ),
    ],
    "keras2": [
        ("sgd", "SGD", LR),
        ("sgd", "SGD", MU),
        ("sgd", "SGD", MU | {"nesterov": True}),
        ("adamax", "Adamax", LR),
        ("nadam", "Nadam", LR),
    ],
    "addons": [
        ("lazyadam", "LazyAdam", LR),
        ("rectifiedadam", "RectifiedAdam", LR),
        ("rectifiedadam", "RectifiedAdam", WD | {"amsgrad": True, "beta2": 0.9}),
        ("adabelief", "AdaBelief", LR | {"rectify": False, "epsilon": 1e-3}),
        ("adabelief", "AdaBelief", WD | {"beta2": 0.9, "epsilon": 1e-3}),
        ("novograd", "NovoGrad", WD),
        ("yogi", "Yogi", LR),
        ("adamw", "AdamW", WD),
        ("sgdw", "SGDW", WD | {"momentum": 0.9}),
        ("proximaladagrad", "ProximalAdagrad", L1_L2),
        ("conditionalgradient", "ConditionalGradient", LR | {"lambda": 0.1}),
        ("lamb", "LAMB", WD),
    ],
}
MODULES = {
    "tf1": v1.train,
    "keras2": tf.keras.optimizers.legacy,
    "addons": tfa.optimizers,
}


def exact(value):
    return tf.constant(value, tf.float64) if isinstance(value, float) else value


def make(family, cls, options):
    of = getattr(MODULES[family], cls)
    if family in ("keras2", "addons"):
        args = {NAMES.get(k, k): v for k, v in options.items()}
        if "nesterov" in options:
            args["nesterov"] = args.pop("use_nesterov")
        if cls == "Yogi" or cls == "LAMB":
            args = {k.replace("beta_", "beta"): v for k, v in args.items()}
        return tf_rows.exact_hypers(of(**args))
    if family == "tf1":
        defaults = {
            k: p.default
            for k, p in inspect.signature(of).parameters.items()
            if isinstance(p.default, float)
        }
        options = defaults | {
            (NAMES.get(k, k) if not k.startswith("beta") else k): v
            for k, v in options.items()
        }
    plain = PLAIN
    if cls == "FtrlOptimizer":  # compares them; they are exact in float32
        plain = options.keys() - {"learning_rate"}
    return of(**{k: v if k in plain else exact(v) for k, v in options.items()})


def gradient(step):
    if "dense" in step:
        return tf.constant(step["dense"], tf.float64)
    return tf.IndexedSlices(
        tf.constant(step["values"], tf.float64),
        tf.constant(step["indices"]),
        tf.constant(SHAPE),
    )


def run_eager(family, cls, options, steps):
    opt, w = make(family, cls, options), tf.Variable(INITIAL, dtype=tf.float64)
    out = []
    for step in steps:
        opt.apply_gradients([(gradient(step), w)])
        out.append(w.numpy().ravel().tolist())
    return out


def run_graph(family, cls, options, steps):
    with tf.Graph().as_default(), v1.Session() as session:
        opt = make(family, cls, options)
        w = v1.get_variable(
            "w", initializer=INITIAL, dtype=tf.float64, use_resource=False
        )
        ops = [opt.apply_gradients([(gradient(s), w)]) for s in steps]
        session.run(v1.global_variables_initializer())
        out = []
        for op in ops:
            session.run(op)
            out.append(session.run(w).ravel().tolist())
        return out


def table(run, *families):
    return [
        {
            "name": f"{family}/{name}",
            "options": options,
            "sequence": sequence,
            "values": run(family, cls, options, steps),
        }
        for family in families
        for name, cls, options in ROWS[family]
        for sequence, steps in STEPS.items()
    ]


# Step by step: in a graph, Addons' updates of slots race with each other.
rows = table(run_eager, "keras2", "addons")

from returnn.tf import updater  # noqa: E402  turns eager execution off

MODULES["returnn"] = updater
rows += table(run_graph, "tf1", "returnn")
data = {
    "source": "tensorflow 2.15.1, tensorflow-addons 0.23.0 and returnn 1.20261022.211313 (float64, CPU)",
    "generator": "generate_tf.py",
    "shape": SHAPE,
    "initial": INITIAL.ravel().tolist(),
    "sequences": STEPS,
    "rows": rows,
}
with open("tf.json", "w") as f:
    json.dump(data, f)
    f.write("\n")
