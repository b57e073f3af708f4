"""Writes ranger.json and ranger_pytorch_optimizer.json.

The first is the package ranger-adabelief, which computes in float32. Here it
computes in float64: while it makes a step, Tensor.float is Tensor.double.
"""

import contextlib
import importlib.metadata
import io
import unittest.mock

import pytorch_optimizer
import ranger_adabelief
import torch
from pytorch_optimizer.optimizer.gradient_centralization import centralize_gradient

import generate_torch
import golden
import ranger_rows


def published(rules, params):
    """Returns the optimizer for a row, and the Python code that makes it."""
    (rule,) = rules
    o = rule["options"]
    args = {
        "lr": o["learning_rate"],
        "alpha": o["slow_step_size"],
        "k": o["sync_period"],
        "N_sma_threshhold": o["sma_threshold"],
        "betas": (o["beta1"], o["beta2"]),
        "eps": o["epsilon"],
        "weight_decay": o["weight_decay"],
        "use_gc": o["use_gc"],
        "gc_conv_only": o["gc_conv_only"],
        "gc_loc": o["gc_loc"],
        "adabelief": rule["name"] == "ranger_adabelief",
        "weight_decouple": o["decay"] != "coupled",
    }
    if not o["gc_loc"] or (o["weight_decay"] and o["decay"] != "coupled"):
        raise ValueError(f"no reference for {rule}")
    with contextlib.redirect_stdout(io.StringIO()):
        opt = ranger_adabelief.RangerAdaBelief(params, **args)
    step = opt.step

    def exact():
        with unittest.mock.patch.object(torch.Tensor, "float", torch.Tensor.double):
            step()

    opt.step = exact
    text = ", ".join(f"{k}={v!r}" for k, v in args.items())
    return opt, f"ranger_adabelief.RangerAdaBelief({text})"


def other(rules, params):
    """The same with pytorch_optimizer."""
    *first, rule = rules
    o = rule["options"]
    args = {
        "lr": o["learning_rate"],
        "betas": (o["beta1"], o["beta2"]),
        "eps": o["epsilon"],
    }
    if first:
        conv_only = first[0]["options"]["conv_only"]
        opt = torch.optim.Adam(params, **args)

        def centralize(*_):
            for p in params:
                centralize_gradient(p.grad, gc_conv_only=conv_only)

        opt.register_step_pre_hook(centralize)
        text = ", ".join(f"{k}={v!r}" for k, v in args.items())
        return opt, (
            f"centralize_gradient(grad, gc_conv_only={conv_only}), "
            f"torch.optim.Adam({text})"
        )
    if o["decay"] == "coupled" or not o["gc_loc"]:
        raise ValueError(f"no reference for {rule}")
    args |= {
        "alpha": o["slow_step_size"],
        "k": o["sync_period"],
        "n_sma_threshold": o["sma_threshold"],
        "degenerated_to_sgd": True,
        "weight_decay": o["weight_decay"],
        "weight_decouple": True,
        "fixed_decay": o["decay"] == "fixed",
        "use_gc": o["use_gc"],
        "gc_conv_only": o["gc_conv_only"],
        "foreach": False,
    }
    text = ", ".join(f"{k}={v!r}" for k, v in args.items())
    return pytorch_optimizer.Ranger(params, **args), f"pytorch_optimizer.Ranger({text})"


def write(name, file, package, optimizer):
    results = []
    for row, rules in ranger_rows.of(file):
        reference, values = generate_torch.run(rules, optimizer)
        results.append((row, reference, rules, values))
    source = (
        f"{package} {importlib.metadata.version(package)}"
        f" ({generate_torch.VERSION}) (float64, CPU)"
    )
    golden.write(name, source, "generate_ranger.py", results)


def main():
    write("ranger", "ranger", "ranger-adabelief", published)
    write("ranger_pytorch_optimizer", "pytorch_optimizer", "pytorch_optimizer", other)


if __name__ == "__main__":
    main()
