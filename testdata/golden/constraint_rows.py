"""The rows of constraints: plain descent with momentum, and then a constraint.

A row is a name, the constraint as this library names it, its options, and the
sources that have it. The rate and the momentum are exact in float32.
"""

import golden
import problem

RATE = 0.25
MU = 0.5
NAMES = [name for name, _ in problem.PARAMS]
EPSILON = 1e-7

_MOMENTUM = {
    "name": "momentum",
    "options": {**golden.OPTIONS["momentum"], "learning_rate": RATE, "momentum": MU},
}
_MOMENTUM["options"].pop("nesterov")


def _row(name, rule, sources, names=(), **options):
    if rule in ("max_norm", "min_max_norm", "unit_norm"):
        options = {"axes": [], "epsilon": EPSILON, **options}
    rules = [_MOMENTUM, {"name": rule, "options": {**options, "names": list(names)}}]
    return "constraint/" + name, rule, {**options, "names": names or NAMES}, sources, rules


_MATRICES = ("a", "b", "c", "d")
_KERAS, _OPTAX, _ALL = ("keras",), ("optax",), ("keras", "optax")

ROWS = [
    _row("non-negative", "non_negative", _ALL),
    _row("non-negative-names", "non_negative", _ALL, ("a", "s")),
    _row("unit-norm", "unit_norm", _KERAS),
    _row("unit-norm-axis", "unit_norm", _KERAS, _MATRICES, axes=[-1]),
    _row("max-norm", "max_norm", _KERAS, max_value=0.75),
    _row("max-norm-axis", "max_norm", _KERAS, _MATRICES, max_value=0.5, axes=[0]),
    _row("max-norm-axes", "max_norm", _KERAS, ("c", "d"), max_value=0.5, axes=[0, 2]),
    _row("min-max-norm", "min_max_norm", _KERAS, min_value=0.5, max_value=0.75, rate=1.0),
    _row("min-max-norm-rate", "min_max_norm", _KERAS, min_value=0.5, max_value=0.75, rate=0.25),
    _row(
        "min-max-norm-axis",
        "min_max_norm",
        _KERAS,
        _MATRICES,
        min_value=0.5,
        max_value=0.75,
        rate=0.5,
        axes=[1],
    ),
    _row("box", "box", _OPTAX, min_value=-0.25, max_value=0.5),
    _row("simplex", "simplex", _OPTAX, radius=1.0),
    _row("simplex-large", "simplex", _OPTAX, ("v", "a", "d"), radius=2.5),
    _row("l1-ball", "l1_ball", _OPTAX, radius=1.0),
    _row("l1-ball-small", "l1_ball", _OPTAX, ("a", "b"), radius=0.25),
    _row("l2-ball", "l2_ball", _OPTAX, radius=0.75),
]


def write(name, source, script, project, wanted=None):
    """Writes the rows of a source. project(rule, options) makes the function of an array."""
    results = []
    for row, rule, options, sources, rules in ROWS:
        if wanted and wanted not in sources:
            continue
        reference, f = project(rule, options)
        params, gradients = problem.problem()
        velocity = [0.0 for _ in params]
        values = []
        for grads in gradients:
            velocity = [MU * v + g for v, g in zip(velocity, grads, strict=True)]
            params = [w - RATE * v for w, v in zip(params, velocity, strict=True)]
            params = [
                f(w) if n in options["names"] else w
                for n, w in zip(NAMES, params, strict=True)
            ]
            values.append(params)
        results.append((row, reference, rules, values))
    golden.write(name, source, script, results)
