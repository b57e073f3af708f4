"""Writes optax.json: the golden rows computed by Optax."""

import jax

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_platforms", "cpu")

import jax.numpy as jnp
import numpy as np
import optax
from optax.contrib import _muon

import problem
import rows


def call(func, /, *args, **kwargs):
    """Returns the result of a function of optax, and the Python code of the call."""
    parts = [f"{v!r}" for v in args] + [f"{k}={v!r}" for k, v in kwargs.items()]
    f = optax
    for attribute in func.split("."):
        f = getattr(f, attribute)
    return f(*args, **kwargs), f"optax.{func}({', '.join(parts)})"


def chain(*parts):
    if len(parts) == 1:
        return parts[0]
    text = "optax.chain(" + ", ".join(text for _, text in parts) + ")"
    return optax.chain(*(t for t, _ in parts)), text


def adam_options(o):
    return {"b1": o["beta1"], "b2": o["beta2"], "eps": o["epsilon"]}


def rate(o):
    """The last transformation: times the rate, with warm-up if there is one."""
    lr = o["learning_rate"]
    if not o.get("total_steps"):
        return call("scale_by_learning_rate", lr)
    # Step t is schedule(t - 1). The rate rises linearly from lr / up at step 1
    # to lr at step up, then falls to the minimum at step total_steps.
    up = round(o["total_steps"] * o["warmup_proportion"])
    down = o["total_steps"] - up
    rise, rise_text = call("linear_schedule", lr / up, lr, up - 1)
    fall, fall_text = call("linear_schedule", lr, o["min_learning_rate"], down)
    schedule = optax.join_schedules([rise, fall], [up - 1])
    text = f"optax.join_schedules([{rise_text}, {fall_text}], [{up - 1}])"
    # Optax divides integers in float32.
    transform = optax.scale_by_learning_rate(
        lambda count: schedule(count.astype(jnp.float64))
    )
    return transform, f"optax.scale_by_learning_rate({text})"


def rate_first(o, *more):
    """Momentum on gradients that are already times the rate."""
    return chain(
        call("scale", o["learning_rate"]),
        call("trace", o["momentum"], nesterov=o["nesterov"]),
        *more,
        call("scale", -1.0),
    )


def muon(o):
    """Muon put together from parts, as Optax has another momentum."""
    coefficients = (o["a"], o["b"], o["c"])

    def orthogonalize(updates, params):
        return jax.tree.map(
            lambda x: _muon.orthogonalize_via_newton_schulz(
                x, jnp.asarray(coefficients), o["ns_steps"], eps=1e-7
            ),
            updates,
        )

    muon, muon_text = chain(
        call("trace", o["momentum"], nesterov=o["nesterov"]),
        (
            optax.stateless(orthogonalize),
            f"newton_schulz({coefficients}, {o['ns_steps']}, eps=1e-07)",
        ),
        # All rank 2 parameters of the problem have 3 as their larger dimension.
        call("scale", o["rms_rate"] * 3**0.5),
        call("add_decayed_weights", o["weight_decay"]),
        rate(o),
    )
    adam, adam_text = call(
        "adamw",
        o["learning_rate"] * o["adam_learning_rate_ratio"],
        b1=o["adam_beta1"],
        b2=o["adam_beta2"],
        eps=0.0,
        # Keras takes the decay times the rate without the ratio.
        weight_decay=o["adam_weight_decay"] / o["adam_learning_rate_ratio"],
    )
    if o["epsilon"] != 0:
        raise ValueError("Optax has another epsilon")
    transform = optax.partition(
        {"muon": muon, "adam": adam},
        lambda params: jax.tree.map(
            lambda x: "muon" if x.ndim == 2 else "adam", params
        ),
    )
    return transform, f"optax.partition(muon={muon_text}, adam={adam_text})"


def transformation(rule):
    """Returns the transformation for a rule, and the Python code that makes it."""
    o = rule["options"]
    name = rule["name"]
    lr = o.get("learning_rate")
    if name == "clip_by_global_norm":
        return call("clip_by_global_norm", max_norm=o["max_norm"])
    if name == "clip_by_value":
        return call("clip", max_delta=o["max_value"])
    if name == "sgd":
        return call("sgd", learning_rate=lr)
    if name in ("momentum", "nesterov"):
        if o.get("rate_inside"):
            return rate_first(o)
        args = {"learning_rate": lr, "momentum": o["momentum"]}
        if name == "nesterov":
            args["nesterov"] = True
        return call("sgd", **args)
    if name == "sgdw":
        return rate_first(o, call("add_decayed_weights", o["weight_decay"]))
    if name == "adam":
        if o.get("amsgrad"):
            return call("amsgrad", learning_rate=lr, **adam_options(o))
        return call("adam", learning_rate=lr, **adam_options(o))
    if name == "adamw":
        if o.get("rate_independent"):
            return chain(
                call("scale_by_adam", **adam_options(o)),
                call("scale", lr),
                call("add_decayed_weights", o["weight_decay"]),
                call("scale", -1.0),
            )
        return call(
            "adamw",
            learning_rate=lr,
            **adam_options(o),
            weight_decay=o["weight_decay"],
        )
    if name == "rmsprop":
        args = {
            "decay": o["rho"],
            "eps": o["epsilon"],
            "initial_scale": o["initial_value"],
            "eps_in_sqrt": o["epsilon_inside"],
        }
        if o["rate_outside"]:
            return chain(
                call("scale_by_stddev" if o["centered"] else "scale_by_rms", **args),
                call("trace", o["momentum"]),
                rate(o),
            )
        args["centered"] = o["centered"]
        if o["momentum"]:
            args["momentum"] = o["momentum"]
        return call("rmsprop", learning_rate=lr, **args)
    if name == "adagrad":
        return call(
            "adagrad",
            learning_rate=lr,
            initial_accumulator_value=o["initial_accumulator_value"],
            eps=o["epsilon"],
        )
    if name == "adadelta":
        return call("adadelta", learning_rate=lr, rho=o["rho"], eps=o["epsilon"])
    if name in ("adamax", "nadam"):
        return call(name, learning_rate=lr, **adam_options(o))
    if name == "radam":
        return chain(
            call("scale_by_radam", **adam_options(o), threshold=o["sma_threshold"]),
            call("add_decayed_weights", o["weight_decay"]),
            rate(o),
        )
    if name == "adabelief":
        inner = o["epsilon_inner"] if o["epsilon_inner"] >= 0 else o["epsilon"]
        return chain(
            call("scale_by_belief", **adam_options(o), eps_root=inner),
            call("add_decayed_weights", o["weight_decay"]),
            rate(o),
        )
    if name == "lion":
        return call(
            "lion",
            learning_rate=lr,
            b1=o["beta1"],
            b2=o["beta2"],
            weight_decay=o["weight_decay"],
        )
    if name in ("lamb", "novograd", "schedule_free_adamw"):
        func = "contrib." + name if name == "schedule_free_adamw" else name
        return call(
            func,
            learning_rate=lr,
            **adam_options(o),
            weight_decay=o["weight_decay"],
        )
    if name == "yogi":
        return chain(
            call(
                "scale_by_yogi",
                **adam_options(o),
                initial_accumulator_value=o["initial_accumulator_value"],
            ),
            rate(o),
        )
    if name == "cocob":
        return call("contrib.cocob", alpha=o["alpha"])
    if name == "muon":
        return muon(o)
    raise ValueError(f"no reference for rule {name}")


def run(rules, transformation=transformation):
    initial, gradients = problem.problem()
    opt, reference = chain(*(transformation(rule) for rule in rules))
    params = [jnp.asarray(x) for x in initial]
    state = opt.init(params)
    values = []
    for grads in gradients:
        updates, state = opt.update([jnp.asarray(g) for g in grads], state, params)
        params = optax.apply_updates(params, updates)
        values.append([np.asarray(p) for p in params])
    return reference, values


SOURCE = f"optax {optax.__version__} (jax {jax.__version__}, float64, CPU)"


def main():
    results = []
    for name, rules in rows.rows("optax"):
        reference, values = run(rules)
        results.append((name, reference, rules, values))
    rows.write("optax", SOURCE, "generate_optax.py", results)


if __name__ == "__main__":
    main()
