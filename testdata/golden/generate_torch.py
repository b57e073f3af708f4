"""Writes torch.json: the golden rows computed by PyTorch."""

import torch

import problem
import rows


def optimizer(rules, params):
    """Returns the optimizer for a row, and the Python code that makes it."""
    (rule,) = rules
    o = rule["options"]
    name = rule["name"]
    if name == "sgd":
        cls, args = "SGD", {"lr": o["learning_rate"]}
    elif name in ("momentum", "nesterov"):
        cls, args = "SGD", {"lr": o["learning_rate"], "momentum": o["momentum"]}
        if name == "nesterov":
            args["nesterov"] = True
    elif name in ("adam", "adamw"):
        cls = {"adam": "Adam", "adamw": "AdamW"}[name]
        args = {
            "lr": o["learning_rate"],
            "betas": (o["beta1"], o["beta2"]),
            "eps": o["epsilon"],
        }
        if name == "adamw":
            args["weight_decay"] = o["weight_decay"]
    else:
        raise ValueError(f"no reference for rule {name}")
    text = ", ".join(f"{k}={v!r}" for k, v in args.items())
    return getattr(torch.optim, cls)(params, **args), f"torch.optim.{cls}({text})"


def run(rules):
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


def main():
    results = []
    for name, rules in rows.rows("torch"):
        reference, values = run(rules)
        results.append((name, reference, rules, values))
    version = torch.__version__.split("+")[0]
    rows.write("torch", f"torch {version} (float64, CPU)", "generate_torch.py", results)


if __name__ == "__main__":
    main()
