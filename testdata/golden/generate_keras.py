"""Writes keras.json: the golden rows computed by Keras on JAX."""

import os

os.environ["KERAS_BACKEND"] = "jax"

import jax

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_platforms", "cpu")

import keras
import numpy as np
from keras.src.backend.common import dtypes

import problem
import rows

keras.config.set_floatx("float64")
# Without this, Keras computes means and norms of float64 arrays in float32.
dtypes.BIT64_TO_BIT32_DTYPE["float64"] = "float64"


def optimizer(rules):
    """Returns the optimizer for a row, and the Python code that makes it."""
    *clip, rule = rules
    o = rule["options"]
    name = rule["name"]
    args = {"learning_rate": o["learning_rate"]}
    if "beta1" in o:
        args["beta_1"] = o["beta1"]
    if "beta2" in o:
        args["beta_2"] = o["beta2"]
    if "epsilon" in o:
        args["epsilon"] = o["epsilon"]
    if o.get("weight_decay"):
        args["weight_decay"] = o["weight_decay"]

    if name in ("sgd", "momentum", "nesterov"):
        cls = "SGD"
        if name != "sgd":
            args["momentum"] = o["momentum"]
        if name == "nesterov":
            args["nesterov"] = True
    elif name == "rmsprop":
        cls = "RMSprop"
        args["rho"] = o["rho"]
        args["momentum"] = o["momentum"]
        args["centered"] = o["centered"]
    elif name in ("adam", "adamw"):
        cls = {"adam": "Adam", "adamw": "AdamW"}[name]
        args["amsgrad"] = o["amsgrad"]
    elif name == "adagrad":
        cls = "Adagrad"
        args["initial_accumulator_value"] = o["initial_accumulator_value"]
    elif name == "adadelta":
        cls = "Adadelta"
        args["rho"] = o["rho"]
    elif name == "adamax":
        cls = "Adamax"
    elif name == "nadam":
        cls = "Nadam"
    elif name == "ftrl":
        cls = "Ftrl"
        args["learning_rate_power"] = o["learning_rate_power"]
        args["initial_accumulator_value"] = o["initial_accumulator_value"]
        args["l1_regularization_strength"] = o["l1"]
        args["l2_regularization_strength"] = o["l2"]
        args["l2_shrinkage_regularization_strength"] = o["l2_shrinkage"]
        args["beta"] = o["beta"]
    elif name == "lion":
        cls = "Lion"
    elif name == "lamb":
        cls = "Lamb"
    elif name == "adafactor":
        cls = "Adafactor"
        args["beta_2_decay"] = o["beta2_decay"]
        args["epsilon_1"] = o["epsilon1"]
        args["epsilon_2"] = o["epsilon2"]
        args["clip_threshold"] = o["clip_threshold"]
    elif name == "muon":
        cls = "Muon"
        args["adam_beta_1"] = o["adam_beta1"]
        args["adam_beta_2"] = o["adam_beta2"]
        args["adam_weight_decay"] = o["adam_weight_decay"]
        args["adam_lr_ratio"] = o["adam_learning_rate_ratio"]
        args["muon_a"] = o["a"]
        args["muon_b"] = o["b"]
        args["muon_c"] = o["c"]
        args["momentum"] = o["momentum"]
        args["ns_steps"] = o["ns_steps"]
        args["nesterov"] = o["nesterov"]
        args["rms_rate"] = o["rms_rate"] or None
    elif name == "schedule_free_adamw":
        cls = "ScheduleFreeAdamW"
        args["warmup_steps"] = o["warmup_steps"]
    else:
        raise ValueError(f"no reference for rule {name}")

    if clip:
        ((key, limit),) = clip[0]["options"].items()
        clips = {
            ("clip_by_global_norm", "max_norm"): "global_clipnorm",
            ("clip_by_norm", "max_norm"): "clipnorm",
            ("clip_by_value", "max_value"): "clipvalue",
        }
        args[clips[clip[0]["name"], key]] = limit
    text = ", ".join(f"{k}={v!r}" for k, v in args.items())
    opt = getattr(keras.optimizers, cls)(**args)
    return opt, f"keras.optimizers.{cls}({text})"


def run(rules, optimizer=optimizer):
    initial, gradients = problem.problem()
    params = [keras.Variable(x, dtype="float64") for x in initial]
    opt, reference = optimizer(rules)
    opt.build(params)
    values = []
    for grads in gradients:
        opt.apply([keras.ops.convert_to_tensor(g, dtype="float64") for g in grads])
        values.append([np.array(p.value) for p in params])
    return reference, values


SOURCE = f"keras {keras.__version__} (jax {jax.__version__}, float64, CPU)"


def main():
    results = []
    for name, rules in rows.rows("keras"):
        reference, values = run(rules)
        results.append((name, reference, rules, values))
    rows.write("keras", SOURCE, "generate_keras.py", results)


if __name__ == "__main__":
    main()
