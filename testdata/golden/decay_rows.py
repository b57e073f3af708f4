"""The rows with weight decay that is added to the gradient, for several files."""

from tf_rows import rule

WEIGHT_DECAY = 0.05

# Row name without the part before "/", the rule after coupled_decay, and the
# files the row belongs to.
_ROWS = [
    ("sgd", rule("sgd", learning_rate=0.1), "torch optax"),
    ("momentum", rule("momentum", learning_rate=0.05), "torch optax"),
    ("momentum-dampening", rule("momentum", dampening=0.2), "torch"),
    ("nesterov", rule("nesterov", learning_rate=0.05, momentum=0.8), "torch optax"),
    ("adam", rule("adam", learning_rate=0.01), "torch optax"),
    (
        "adam-eps-1e-3",
        rule("adam", learning_rate=0.05, beta1=0.8, beta2=0.95, epsilon=1e-3),
        "torch optax",
    ),
    ("rmsprop", rule("rmsprop", learning_rate=0.01, rho=0.99), "torch optax"),
    (
        "rmsprop-centered-momentum",
        rule(
            "rmsprop",
            learning_rate=0.01,
            epsilon=1e-4,
            momentum=0.5,
            centered=True,
            rate_outside=True,
        ),
        "torch",
    ),
    ("adagrad", rule("adagrad", learning_rate=0.1), "torch"),
    (
        "adamax",
        rule("adamax", learning_rate=0.01, epsilon_inside_max=True),
        "torch optax",
    ),
]


def rows(source):
    """Returns the (name, rules) pairs of the file <source>_decay.json."""
    decay = {"name": "coupled_decay", "options": {"weight_decay": WEIGHT_DECAY}}
    found = [
        (f"coupled-decay-{WEIGHT_DECAY}/{name}", [decay, r])
        for name, r, files in _ROWS
        if source in files.split()
    ]
    if source == "optax":
        options = {"l1": 0.0, "l2": 0.02, "batch_size": 4.0, "clip": 0.1}
        regularize = {"name": "regularize", "options": options}
        found.append(
            ("regularize-l2/sgd", [regularize, rule("sgd", learning_rate=0.1)])
        )
    return found
