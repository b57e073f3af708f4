"""Writes optax_decay.json: the rows of decay_rows.py computed by Optax."""

# Turns on float64, so it comes before the use of jax.
import generate_optax  # noqa: I001

import jax
import jax.numpy as jnp
import numpy as np
import optax

import decay_rows
import golden
import problem


def before(name, o):
    """The transformations of the first rule."""
    call = generate_optax.call
    if name == "coupled_decay":
        return [call("add_decayed_weights", o["weight_decay"])]
    # Optax has no L1 for this.
    if name != "regularize" or o["l1"]:
        raise ValueError(f"no reference for rule {name}")
    return [
        call("add_decayed_weights", o["l2"]),
        call("scale", 1 / o["batch_size"]),
        call("clip", o["clip"]),
    ]


def run(rules):
    """Returns the Python code of the transformation, and the values."""
    first, rule = rules
    opt, reference = generate_optax.chain(
        *before(first["name"], first["options"]), generate_optax.transformation(rule)
    )
    initial, gradients = problem.problem()
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
    for name, rules in decay_rows.rows("optax"):
        reference, values = run(rules)
        results.append((name, reference, rules, values))
    source = f"optax {optax.__version__} (jax {jax.__version__}, float64, CPU)"
    golden.write("optax_decay", source, "generate_optax_decay.py", results)


if __name__ == "__main__":
    main()
