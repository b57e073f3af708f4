"""Writes torch_decay.json: the rows of decay_rows.py computed by PyTorch."""

import torch

import golden
import decay_rows
import generate_torch
import tf_rows


def optimizer(rules, params):
    """Returns the optimizer for a row, and the Python code that makes it."""
    decay, rule = rules
    o = rule["options"]
    name = rule["name"]
    args = {"lr": o["learning_rate"]}
    if "beta1" in o:
        args["betas"] = (o["beta1"], o["beta2"])
    if "epsilon" in o:
        args["eps"] = o["epsilon"]

    if name == "sgd":
        cls = "SGD"
    elif name in ("momentum", "nesterov"):
        cls = "SGD"
        args["momentum"] = o["momentum"]
        args["dampening"] = o["dampening"]
        args["nesterov"] = name == "nesterov"
    elif name == "rmsprop":
        cls = "RMSprop"
        args["alpha"] = o["rho"]
        args["momentum"] = o["momentum"]
        args["centered"] = o["centered"]
    elif name == "adagrad":
        cls = "Adagrad"
        args["initial_accumulator_value"] = o["initial_accumulator_value"]
    elif name in ("adam", "adamax"):
        cls = name.capitalize()
    else:
        raise ValueError(f"no reference for rule {name}")
    args["weight_decay"] = decay["options"]["weight_decay"]
    reference = tf_rows.call("torch.optim." + cls, args)
    return getattr(torch.optim, cls)(params, **args), reference


def main():
    results = []
    for name, rules in decay_rows.rows("torch"):
        reference, values = generate_torch.run(rules, optimizer)
        results.append((name, reference, rules, values))
    source = f"{generate_torch.VERSION} (float64, CPU)"
    golden.write("torch_decay", source, "generate_torch_decay.py", results)


if __name__ == "__main__":
    main()
