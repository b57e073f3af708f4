"""Writes adabelief.json: the golden AdaBelief rows computed by adabelief-pytorch."""

import contextlib
import importlib.metadata
import io

import adabelief_pytorch

import generate_torch


def optimizer(rules, params):
    """Returns the optimizer for a row, and the Python code that makes it."""
    (rule,) = rules
    o = rule["options"]
    if rule["name"] != "adabelief" or (o["amsgrad"] and o["rectify"]):
        raise ValueError(f"no reference for {rule}")
    args = {
        "lr": o["learning_rate"],
        "betas": (o["beta1"], o["beta2"]),
        "eps": o["epsilon"],
        "weight_decay": o["weight_decay"],
        "amsgrad": o["amsgrad"],
        "weight_decouple": o["decay"] != "coupled",
        "fixed_decay": o["decay"] == "fixed",
        "rectify": o["rectify"],
        "degenerated_to_sgd": o["degenerated_to_sgd"],
    }
    text = ", ".join(f"{k}={v!r}" for k, v in args.items())
    with contextlib.redirect_stdout(io.StringIO()):
        opt = adabelief_pytorch.AdaBelief(params, print_change_log=False, **args)
    return opt, f"adabelief_pytorch.AdaBelief({text})"


VERSION = (
    "adabelief-pytorch "
    + importlib.metadata.version("adabelief-pytorch")
    + f" ({generate_torch.VERSION})"
)


def main():
    generate_torch.write("adabelief", VERSION, "generate_adabelief.py", optimizer)


if __name__ == "__main__":
    main()
