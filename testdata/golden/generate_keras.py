"""Writes keras.json: the golden clipping rows computed by Keras on JAX."""

import os

os.environ["KERAS_BACKEND"] = "jax"

import jax

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_platforms", "cpu")

import keras
import numpy as np

import problem
import rows


def optimizer(rules):
    """Returns the optimizer for a row, and the Python code that makes it."""
    clip, rule = rules
    if clip["name"] != "clip_by_global_norm":
        raise ValueError(f"no reference for rule {clip['name']}")
    args = {"learning_rate": rule["options"]["learning_rate"]}
    if rule["name"] == "momentum":
        args["momentum"] = rule["options"]["momentum"]
    elif rule["name"] != "sgd":
        raise ValueError(f"no reference for rule {rule['name']}")
    args["global_clipnorm"] = clip["options"]["max_norm"]
    text = ", ".join(f"{k}={v!r}" for k, v in args.items())
    return keras.optimizers.SGD(**args), f"keras.optimizers.SGD({text})"


def run(rules):
    initial, gradients = problem.problem()
    params = [keras.Variable(x, dtype="float64") for x in initial]
    opt, reference = optimizer(rules)
    opt.build(params)
    values = []
    for grads in gradients:
        opt.apply([keras.ops.convert_to_tensor(g, dtype="float64") for g in grads])
        values.append([np.array(p.value) for p in params])
    return reference, values


def main():
    keras.config.set_floatx("float64")
    results = []
    for name, rules in rows.rows("keras"):
        reference, values = run(rules)
        results.append((name, reference, rules, values))
    source = f"keras {keras.__version__} (jax {jax.__version__}, float64, CPU)"
    rows.write("keras", source, "generate_keras.py", results)


if __name__ == "__main__":
    main()
