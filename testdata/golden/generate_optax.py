"""Writes optax.json: the golden rows computed by Optax."""

import jax

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_platforms", "cpu")

import jax.numpy as jnp
import numpy as np
import optax

import problem
import rows


def transformation(rule):
    """Returns the transformation for a rule, and the Python code that makes it."""
    o = rule["options"]
    name = rule["name"]
    if name == "clip_by_global_norm":
        func, args = "clip_by_global_norm", {"max_norm": o["max_norm"]}
    elif name == "sgd":
        func, args = "sgd", {"learning_rate": o["learning_rate"]}
    elif name in ("momentum", "nesterov"):
        func = "sgd"
        args = {"learning_rate": o["learning_rate"], "momentum": o["momentum"]}
        if name == "nesterov":
            args["nesterov"] = True
    elif name in ("adam", "adamw"):
        func = name
        args = {
            "learning_rate": o["learning_rate"],
            "b1": o["beta1"],
            "b2": o["beta2"],
            "eps": o["epsilon"],
        }
        if name == "adamw":
            args["weight_decay"] = o["weight_decay"]
    else:
        raise ValueError(f"no reference for rule {name}")
    text = ", ".join(f"{k}={v!r}" for k, v in args.items())
    return getattr(optax, func)(**args), f"optax.{func}({text})"


def run(rules):
    initial, gradients = problem.problem()
    parts = [transformation(rule) for rule in rules]
    if len(parts) == 1:
        opt, reference = parts[0]
    else:
        opt = optax.chain(*(t for t, _ in parts))
        reference = "optax.chain(" + ", ".join(text for _, text in parts) + ")"
    params = [jnp.asarray(x) for x in initial]
    state = opt.init(params)
    values = []
    for grads in gradients:
        updates, state = opt.update([jnp.asarray(g) for g in grads], state, params)
        params = optax.apply_updates(params, updates)
        values.append([np.asarray(p) for p in params])
    return reference, values


def main():
    results = []
    for name, rules in rows.rows("optax"):
        reference, values = run(rules)
        results.append((name, reference, rules, values))
    source = f"optax {optax.__version__} (jax {jax.__version__}, float64, CPU)"
    rows.write("optax", source, "generate_optax.py", results)


if __name__ == "__main__":
    main()
