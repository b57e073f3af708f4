"""Writes torch.json: the golden rows computed by PyTorch."""

import torch

import problem
import rows

# The NAdam state has a product of scalars of the default type.
torch.set_default_dtype(torch.float64)


def optimizer(rules, params):
    """Returns the optimizer for a row, and the Python code that makes it."""
    *clip, rule = rules
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
        if o.get("dampening"):
            args["dampening"] = o["dampening"]
        if name == "nesterov":
            args["nesterov"] = True
    elif name in ("adam", "adamw"):
        cls = {"adam": "Adam", "adamw": "AdamW"}[name]
        if name == "adamw":
            # AdamW multiplies the decay by the rate.
            rate = o["learning_rate"] if o.get("rate_independent") else 1.0
            args["weight_decay"] = o["weight_decay"] / rate
        if o.get("amsgrad"):
            args["amsgrad"] = True
    elif name == "rmsprop":
        cls = "RMSprop"
        args["alpha"] = o["rho"]
        args["momentum"] = o["momentum"]
        args["centered"] = o["centered"]
    elif name == "adagrad":
        cls = "Adagrad"
        args["lr_decay"] = o["rate_decay"]
        args["initial_accumulator_value"] = o["initial_accumulator_value"]
    elif name == "adadelta":
        cls = "Adadelta"
        args["rho"] = o["rho"]
    elif name == "adamax":
        cls = "Adamax"
    elif name == "nadam":
        cls = "NAdam"
        args["momentum_decay"] = o["momentum_decay"]
    elif name == "radam":
        cls = "RAdam"
        if o["weight_decay"]:
            args["weight_decay"] = o["weight_decay"]
            args["decoupled_weight_decay"] = True
    elif name == "adafactor":
        cls = "Adafactor"
        args["beta2_decay"] = o["beta2_decay"]
        # The first is a lower limit of the second moment here, and a term in it
        # elsewhere. 1e-30 is too small for a difference.
        args["eps"] = (o["epsilon1"], o["epsilon2"])
        args["d"] = o["clip_threshold"]
        args["weight_decay"] = 0.0
    else:
        raise ValueError(f"no reference for rule {name}")
    text = ", ".join(f"{k}={v!r}" for k, v in args.items())
    text = f"torch.optim.{cls}({text})"
    opt = getattr(torch.optim, cls)(params, **args)
    if clip:
        if [rule["name"] for rule in clip] != ["clip_by_value"]:
            raise ValueError(f"no reference for {clip}")
        limit = clip[0]["options"]["max_value"]
        opt.register_step_pre_hook(
            lambda *_: torch.nn.utils.clip_grad_value_(params, limit)
        )
        text = f"torch.nn.utils.clip_grad_value_(params, {limit}), {text}"
    return opt, text


def run(rules, optimizer):
    initial, gradients = problem.problem()
    params = [torch.nn.Parameter(torch.from_numpy(x.copy())) for x in initial]
    opt, reference = optimizer(rules, params)
    values = []
    for grads in gradients:
        for p, g in zip(params, grads, strict=True):
            p.grad = torch.from_numpy(g.copy())
        opt.step()
        values.append([p.detach().numpy().copy() for p in params])
    return reference, values


def write(name, package, generator, optimizer):
    results = []
    for row, rules in rows.rows(name):
        reference, values = run(rules, optimizer)
        results.append((row, reference, rules, values))
    rows.write(name, f"{package} (float64, CPU)", generator, results)


VERSION = "torch " + torch.__version__.split("+")[0]


def main():
    write("torch", VERSION, "generate_torch.py", optimizer)


if __name__ == "__main__":
    main()
