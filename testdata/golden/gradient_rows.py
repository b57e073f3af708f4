"""The rows of transformations of gradients, as RETURNN's configs name them.

A row is a name, a RETURNN config without its optimizer, the tagged parameters, and
this library's rules. The optimizer is momentum, with a rate and a decay that are
exact in float32.
"""

import golden
import problem

RATE = 0.125
MU = 0.5

_MOMENTUM = {
    "name": "momentum",
    "options": {**golden.OPTIONS["momentum"], "learning_rate": RATE, "momentum": MU},
}
_MOMENTUM["options"].pop("nesterov")


def _rule(name, limit=None, over=(), raw=True):
    options = {}
    if name == "clip_by_value":
        options["max_value"] = limit
    elif limit is not None:
        options["max_norm"] = limit
    if name in ("clip_by_global_norm", "zero_by_global_norm"):
        options["raw"] = raw
        options["over"] = list(over)
    return {"name": name, "options": options}


# The option of RETURNN, in the order in which it applies them, and the rule.
OPTIONS = {
    "gradient_clip": "clip_by_value",
    "gradient_clip_norm": "clip_by_norm",
    "gradient_clip_avg_norm": "clip_by_average_norm",
    "gradient_clip_global_norm": "clip_by_global_norm",
    "gradient_nan_inf_filter": "filter_not_finite",
    "grad_norm_to_clip_to_zero": "zero_by_global_norm",
}


def _row(name, tagged=(), **config):
    rules = []
    for option, rule in OPTIONS.items():
        if option in config:
            limit = config[option]
            rules.append(_rule(rule, None if limit is True else limit, tagged))
    if tagged:
        config["global_norm_tag"] = "tag"
    return "gradient/" + name, config, tagged, [*rules, _MOMENTUM]


ROWS = [
    _row("clip", gradient_clip=0.25),
    _row("clip-small", gradient_clip=0.01),
    _row("clip-norm", gradient_clip_norm=0.5),
    _row("clip-norm-large", gradient_clip_norm=1.5),
    _row("clip-average-norm", gradient_clip_avg_norm=0.125),
    _row("clip-average-norm-small", gradient_clip_avg_norm=0.02),
    _row("clip-global-norm", gradient_clip_global_norm=1.0),
    _row("clip-global-norm-tag", ("a", "c"), gradient_clip_global_norm=0.7),
    _row("filter", gradient_nan_inf_filter=True),
    _row("zero", grad_norm_to_clip_to_zero=2.0),
    _row("zero-tag", ("b", "s"), grad_norm_to_clip_to_zero=0.6),
    # Here the norms of the raw gradients are others than those of the clipped.
    _row(
        "all",
        gradient_clip=0.5,
        gradient_clip_norm=0.9,
        gradient_clip_avg_norm=0.2,
        gradient_clip_global_norm=1.2,
        gradient_nan_inf_filter=True,
        grad_norm_to_clip_to_zero=3.0,
    ),
    _row(
        "all-tag",
        ("a", "v"),
        gradient_clip=0.5,
        gradient_clip_norm=0.9,
        gradient_clip_avg_norm=0.2,
        gradient_clip_global_norm=0.4,
        gradient_nan_inf_filter=True,
        grad_norm_to_clip_to_zero=2.0,
    ),
]

NAMES = [name for name, _ in problem.PARAMS]
