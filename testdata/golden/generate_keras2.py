"""Writes keras2.json: the golden rows computed by the optimizers of Keras 2."""

import keras
import tensorflow as tf

import golden
import problem
import tf_rows
from tf_rows import rule

# Nadam's schedule is 0.96 to a power, and Keras rounds the 0.96 to float32. With
# the default schedule_decay that is not visible.
ROUNDED = {"float64": 2e-8, "float32": 2e-5}
NOTE = " (0.96 rounded to float32)"

# Row name, rule, optimizer and its arguments.
ROWS = [
    (
        "keras2/adamax",
        rule("adamax", learning_rate=0.002, epsilon=1e-7),
        "Adamax",
        {"learning_rate": 0.002, "beta_1": 0.9, "beta_2": 0.999, "epsilon": 1e-7},
    ),
    (
        "keras2/adamax-eps-1e-2",
        rule("adamax", learning_rate=0.05, beta1=0.8, beta2=0.9, epsilon=1e-2),
        "Adamax",
        {"learning_rate": 0.05, "beta_1": 0.8, "beta_2": 0.9, "epsilon": 1e-2},
    ),
    (
        "keras2/nadam",
        rule("nadam", learning_rate=0.001, epsilon=1e-7, momentum_decay=0.004),
        "Nadam",
        {"learning_rate": 0.001, "beta_1": 0.9, "beta_2": 0.999, "epsilon": 1e-7},
    ),
    (
        "keras2/nadam-decay-0.5",
        rule(
            "nadam",
            learning_rate=0.02,
            beta1=0.8,
            beta2=0.99,
            epsilon=1e-3,
            momentum_decay=0.5,
        ),
        "Nadam",
        {
            "learning_rate": 0.02,
            "beta_1": 0.8,
            "beta_2": 0.99,
            "epsilon": 1e-3,
            "schedule_decay": 0.5,
        },
    ),
]


SOURCE = f"keras {keras.__version__} with tensorflow {tf.__version__} (float64, CPU)"


def main():
    results = []
    for name, r, cls, args in ROWS:
        initial, gradients = problem.problem()
        optimizer = getattr(tf.keras.optimizers.legacy, cls)(**args)
        values = tf_rows.run_eager(tf_rows.exact_hypers(optimizer), initial, gradients)
        reference = tf_rows.call("tf.keras.optimizers.legacy." + cls, args)
        row = (name, reference, [r], values)
        if name == "keras2/nadam-decay-0.5":
            row = (name, reference + NOTE, [r], values, ROUNDED)
        results.append(row)
    golden.write("keras2", SOURCE, "generate_keras2.py", results)


if __name__ == "__main__":
    main()
