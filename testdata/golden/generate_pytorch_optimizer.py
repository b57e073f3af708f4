"""Writes pytorch_optimizer.json: the golden rows computed by pytorch_optimizer."""

import importlib.metadata

import pytorch_optimizer

import generate_torch


def optimizer(rules, params):
    """Returns the optimizer for a row, and the Python code that makes it."""
    (rule,) = rules
    o = rule["options"]
    name = rule["name"]
    args = {"lr": o["learning_rate"]}
    if "beta1" in o:
        args["betas"] = (o["beta1"], o["beta2"])
    if "epsilon" in o:
        args["eps"] = o["epsilon"]
    if "weight_decay" in o:
        args["weight_decay"] = o["weight_decay"]

    if name == "momentum":
        cls = "SGDW"
        args["momentum"] = o["momentum"]
        args["dampening"] = o["dampening"]
    elif name == "sgdw":
        cls = "SGDW"
        # SGDW multiplies the decay by the rate.
        args["weight_decay"] = o["weight_decay"] / o["learning_rate"]
        args["momentum"] = o["momentum"]
        args["nesterov"] = o["nesterov"]
    elif name == "lion":
        cls = "Lion"
    elif name == "radam":
        cls = "RAdam"
        args["n_sma_threshold"] = o["sma_threshold"]
        args["degenerated_to_sgd"] = True
    elif name == "adabelief":
        cls = "AdaBelief"
        args["ams_bound"] = o["amsgrad"]
        args["weight_decouple"] = o["decay"] != "coupled"
        args["fixed_decay"] = o["decay"] == "fixed"
        args["rectify"] = o["rectify"]
        args["n_sma_threshold"] = o["sma_threshold"]
        args["degenerated_to_sgd"] = o["degenerated_to_sgd"]
    elif name == "novograd":
        cls = "NovoGrad"
        args["grad_averaging"] = o["grad_averaging"]
    elif name == "yogi":
        cls = "Yogi"
        args["initial_accumulator"] = o["initial_accumulator_value"]
    elif name == "ftrl":
        cls = "FTRL"
        args["lr_power"] = o["learning_rate_power"]
        args["beta"] = o["beta"]
        args["lambda_1"] = o["l1"]
        args["lambda_2"] = 2 * o["l2"]
    elif name == "schedule_free_adamw":
        cls = "ScheduleFreeAdamW"
        args["warmup_steps"] = o["warmup_steps"]
        # The average has equal weights, also in the warmup.
        args["weight_lr_power"] = 0.0
    else:
        raise ValueError(f"no reference for rule {name}")
    args["foreach"] = False
    text = ", ".join(f"{k}={v!r}" for k, v in args.items())
    opt = getattr(pytorch_optimizer, cls)(params, **args)
    return opt, f"pytorch_optimizer.{cls}({text})"


def main():
    package = "pytorch_optimizer " + importlib.metadata.version("pytorch_optimizer")
    package += f" ({generate_torch.VERSION})"
    generate_torch.write(
        "pytorch_optimizer", package, "generate_pytorch_optimizer.py", optimizer
    )


if __name__ == "__main__":
    main()
