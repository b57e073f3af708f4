"""Writes parameterfree.json: the golden COCOB rows computed by parameterfree."""

import importlib.metadata

import parameterfree

import generate_torch


def optimizer(rules, params):
    """Returns the optimizer for a row, and the Python code that makes it."""
    (rule,) = rules
    if rule["name"] != "cocob":
        raise ValueError(f"no reference for rule {rule['name']}")
    alpha = rule["options"]["alpha"]
    opt = parameterfree.COCOB(params, alpha=alpha)
    return opt, f"parameterfree.COCOB(alpha={alpha!r})"


def main():
    package = "parameterfree " + importlib.metadata.version("parameterfree")
    package += f" ({generate_torch.VERSION})"
    generate_torch.write(
        "parameterfree", package, "generate_parameterfree.py", optimizer
    )


if __name__ == "__main__":
    main()
