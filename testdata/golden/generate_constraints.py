"""Writes constraints_keras.json and constraints_optax.json: constraints of the weights."""

import generate_keras  # noqa: I001

import jax
import keras
import numpy as np
import optax

import constraint_rows


def keras_constraint(rule, options):
    axis = options.get("axes") or None
    match rule:
        case "non_negative":
            name, args = "NonNeg", {}
        case "unit_norm":
            name, args = "UnitNorm", {"axis": axis}
        case "max_norm":
            name, args = "MaxNorm", {"max_value": options["max_value"], "axis": axis}
        case "min_max_norm":
            args = {k: options[k] for k in ("min_value", "max_value", "rate")}
            name, args = "MinMaxNorm", {**args, "axis": axis}
    if axis:
        args["axis"] = tuple(axis)
    constraint = getattr(keras.constraints, name)(**args)
    text = ", ".join(f"{k}={v!r}" for k, v in args.items())
    return f"keras.constraints.{name}({text})", lambda w: np.array(constraint(w))


def optax_projection(rule, options):
    name = "projection_" + rule
    args = ()
    if rule == "box":
        args = (options["min_value"], options["max_value"])
    elif rule != "non_negative":
        args = (options["radius"],)
    f = getattr(optax.projections, name)
    text = ", ".join(["w", *map(repr, args)])
    return (
        f"optax.projections.{name}({text})",
        lambda w: np.array(f(jax.numpy.asarray(w), *args)),
    )


def main():
    constraint_rows.write(
        "constraints_keras",
        generate_keras.SOURCE,
        "generate_constraints.py",
        keras_constraint,
        "keras",
    )
    constraint_rows.write(
        "constraints_optax",
        f"optax {optax.__version__} (jax {jax.__version__}, float64, CPU)",
        "generate_constraints.py",
        optax_projection,
        "optax",
    )


if __name__ == "__main__":
    main()
