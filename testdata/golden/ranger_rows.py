"""The rows of Ranger and of gradient centralisation.

A row is a name, rules with all of their options, and the files that it belongs to.
The published code writes the weight decay, and what the centralisation of the
direction takes away, into the first moment while the steps are not rectified. So
rows with these are in numpy_ranger.json alone.
"""

import rows

_DEFAULTS = {
    "learning_rate": 0.001,
    "beta1": 0.95,
    "beta2": 0.999,
    "epsilon": 1e-5,
    "weight_decay": 0.0,
    "sma_threshold": 5.0,
    "sync_period": 6,
    "slow_step_size": 0.5,
    "use_gc": True,
    "gc_conv_only": False,
    "gc_loc": True,
    "decay": "direction",
}

# Steps that are large, and rectified soon.
_LARGE = {"learning_rate": 0.05, "beta1": 0.8, "beta2": 0.9, "epsilon": 1e-2}


def _row(name, files, **options):
    unknown = set(options) - set(_DEFAULTS)
    if unknown:
        raise ValueError(f"no options {unknown}")
    rule = {"name": name.split("/")[0], "options": _DEFAULTS | options}
    return name, [rule], files


def _centralized(name, files, rule, **options):
    first = {"name": "centralize_gradients", "options": options}
    return name, [first, rule], files


_ADAM = rows._rule("adam", 0.05, (0.9, 0.999), 1e-8)
_KEPT = {"conv_only": False, "keep_last": False}

_ALL = "ranger numpy pytorch_optimizer"
_BOTH = "ranger numpy"

ROWS = [
    _row("ranger/defaults", _ALL),
    _row("ranger/large", _ALL, **_LARGE, sync_period=4, slow_step_size=0.3),
    _row("ranger/k-1", _ALL, **_LARGE, sync_period=1),
    _row("ranger/no-gc", _ALL, **_LARGE, use_gc=False, sma_threshold=6.0),
    _row("ranger/gc-conv-only", _ALL, **_LARGE, gc_conv_only=True),
    _row(
        "ranger/wd-rate",
        "numpy pytorch_optimizer",
        **_LARGE,
        weight_decay=0.1,
        decay="rate",
    ),
    _row(
        "ranger/wd-fixed",
        "numpy pytorch_optimizer",
        **_LARGE,
        weight_decay=0.01,
        decay="fixed",
    ),
    _row("ranger/wd-coupled", _BOTH, **_LARGE, weight_decay=0.1, decay="coupled"),
    _row("ranger/wd-direction", "numpy", **_LARGE, weight_decay=0.1),
    _row("ranger/gc-of-direction", "numpy", **_LARGE, weight_decay=0.1, gc_loc=False),
    _row("ranger_adabelief/defaults", _BOTH),
    _row(
        "ranger_adabelief/large",
        _BOTH,
        **_LARGE,
        sync_period=5,
        slow_step_size=0.7,
    ),
    _row(
        "ranger_adabelief/wd-coupled",
        _BOTH,
        **_LARGE,
        weight_decay=0.1,
        decay="coupled",
        gc_conv_only=True,
    ),
    _row("ranger_adabelief/wd-direction", "numpy", **_LARGE, weight_decay=0.1),
    _centralized(
        "centralize_gradients/adam", "numpy pytorch_optimizer", _ADAM, **_KEPT
    ),
    _centralized(
        "centralize_gradients/conv-only",
        "numpy pytorch_optimizer",
        _ADAM,
        **_KEPT | {"conv_only": True},
    ),
    _centralized(
        "centralize_gradients/keep-last",
        "numpy",
        _ADAM,
        **_KEPT | {"keep_last": True},
    ),
]


def of(file):
    return [(name, rules) for name, rules, files in ROWS if file in files.split()]
