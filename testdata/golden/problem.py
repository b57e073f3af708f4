"""The optimization problem that every golden trajectory runs on.

There is no loss function. The problem is a list of parameters with fixed
initial values, and a fixed list of gradients that is fed to the optimizer one
step at a time. The gradients do not depend on the parameters, so rounding
errors are not fed back through a loss.

All numbers are drawn from numpy's default_rng(SEED), in the order in which
they appear below, and are rounded to float32. They are therefore exact in both
float32 and float64.
"""

import numpy as np

SEED = 20261130
STEPS = 25

# Name and shape. a and b share a shape on purpose, so that optimizer state
# kept under the wrong parameter shows up as a wrong value, not as an error.
PARAMS = [
    ("s", ()),
    ("v", (3,)),
    ("a", (2, 3)),
    ("b", (2, 3)),
    ("c", (2, 1, 3)),
    ("d", (1, 2, 2, 1)),
]

# Step t (counting from 0) has its normal draws multiplied by
# SCALES[t % len(SCALES)]. The global norm of a step is about 5 times its
# scale, so some steps lie above and some below the clipping limits in use.
SCALES = (1.0, 0.3, 0.1, 0.03, 0.01)

# In this step (counting from 0) the gradient of b is all zeros.
ZERO_STEP = 11
ZERO_PARAM = "b"


def _normal(rng, shape, scale=1.0):
    draw = np.asarray(scale * rng.standard_normal(shape))
    return draw.astype(np.float32).astype(np.float64)


def problem():
    """Returns (initial values, gradients).

    The first is a list with one float64 array per parameter, the second has
    one such list per step.
    """
    rng = np.random.default_rng(SEED)
    initial = [_normal(rng, shape) for _, shape in PARAMS]
    gradients = []
    for step in range(STEPS):
        scale = SCALES[step % len(SCALES)]
        grads = [_normal(rng, shape, scale) for _, shape in PARAMS]
        if step == ZERO_STEP:
            for i, (name, _) in enumerate(PARAMS):
                if name == ZERO_PARAM:
                    grads[i] = np.zeros_like(grads[i])
        gradients.append(grads)
    return initial, gradients
