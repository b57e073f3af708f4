"""The AdaBelief rows that tensorflow_addons and adabelief_tf both compute."""

from tf_rows import rule

# Row name, options of the rule, arguments of the optimizer that differ from
# the other name for the same thing or from the default.
_ROWS = [
    ("adabelief", {}),
    ("adabelief-lr-0.01", {"learning_rate": 0.01, "beta1": 0.8, "beta2": 0.99}),
    ("adabelief-plain", {"learning_rate": 0.01, "rectify": False}),
    ("adabelief-plain-eps-1e-4", {"rectify": False, "epsilon": 1e-4}),
    (
        "adabelief-plain-amsgrad",
        {"learning_rate": 0.01, "beta2": 0.9, "rectify": False, "amsgrad": True},
    ),
    (
        "adabelief-amsgrad",
        {"learning_rate": 0.01, "beta2": 0.9, "amsgrad": True},
    ),
    ("adabelief-wd-0.01", {"learning_rate": 0.05, "weight_decay": 0.01}),
    (
        "adabelief-warmup",
        {
            "learning_rate": 0.01,
            "total_steps": 20,
            "warmup_proportion": 0.3,
            "min_learning_rate": 1e-5,
        },
    ),
    (
        "adabelief-warmup-wd-0.1",
        {
            "learning_rate": 0.01,
            "rectify": False,
            "total_steps": 20,
            "warmup_proportion": 0.3,
            "min_learning_rate": 1e-5,
            "weight_decay": 0.1,
        },
    ),
]

_NAMES = {"beta1": "beta_1", "beta2": "beta_2", "min_learning_rate": "min_lr"}

_ARGS = (
    "learning_rate",
    "beta1",
    "beta2",
    "epsilon",
    "weight_decay",
    "amsgrad",
    "rectify",
    "sma_threshold",
    "total_steps",
    "warmup_proportion",
    "min_learning_rate",
)


def rows(prefix):
    """Returns one (row name, rule, arguments) tuple per row."""
    out = []
    for name, options in _ROWS:
        r = rule("adabelief", **options)
        args = {_NAMES.get(k, k): r["options"][k] for k in _ARGS}
        out.append((prefix + "/" + name, r, args))
    return out
