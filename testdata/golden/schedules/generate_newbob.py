"""Writes newbob.json: the rates that RETURNN's learning rate control sets."""

import importlib.metadata

from returnn import learning_rate_control as C
from returnn.config import Config

import golden_schedules

SCORES = [
    3.0,
    2.0,
    1.99,
    1.985,
    1.5,
    1.6,
    1.2,
    1.19,
    1.195,
    1.1,
    0.9,
    0.895,
    0.8,
    0.79,
    0.795,
    0.8,
    0.5,
    0.4,
    0.399,
    0.398,
    0.2,
    0.3,
]
SIGNS = [1.0, 0.5, -0.2, -0.201, -0.4, -0.3, 0.1, -0.5, -0.502, -1.0]

# RETURNN's keys, and the options here.
OPTIONS = {
    "newbob_relative_error_threshold": "threshold",
    "newbob_error_threshold": "threshold",
    "newbob_relative_error_grow_threshold": "grow_threshold",
    "newbob_multi_num_epochs": "num_epochs",
    "newbob_multi_update_interval": "update_interval",
    "newbob_learning_rate_decay": "decay",
    "newbob_learning_rate_growth": "growth",
    "learning_rate_decay": "decay",
    "min_learning_rate": "min_rate",
    "newbob_relative_error_div_by_old": "div_by_old",
    "learning_rate_control_relative_error_relative_lr": "relative_to_rate",
    "learning_rate_control_min_num_epochs_per_new_lr": "min_epochs_per_rate",
}
FORMS = {
    "newbob": "relative",
    "newbob_abs": "absolute",
    "newbob_multi_epoch": "multi_epoch",
    "constant": "constant",
}


def row(name, kind, scores=SCORES, rates=None, **keys):
    config = {"learning_rate_control": kind, "learning_rate": 0.1, **keys}
    if rates:
        config["learning_rates"] = rates
    control = C.load_learning_rate_control_from_config(Config(dict(config)))
    values = [control.get_learning_rate_for_epoch(1)]
    for epoch, x in enumerate(scores, 1):
        if x is not None:
            control.set_epoch_error(epoch, {"dev_score": x})
        values.append(control.get_learning_rate_for_epoch(epoch + 1))
    r = {
        "name": name,
        "reference": "RETURNN " + ", ".join(f"{k}={v!r}" for k, v in config.items()),
        "rate": 0.1,
        "options": {"form": FORMS[kind], **{OPTIONS[k]: v for k, v in keys.items()}},
        "tolerance": 1e-12,
        "scores": scores,
        "values": values,
    }
    if rates:
        r["rates"] = rates if isinstance(rates, dict) else dict(enumerate(rates, 1))
    return r


def rows():
    holes = [None if i in (2, 3, 9) else x for i, x in enumerate(SCORES)]
    multi = dict(newbob_multi_num_epochs=3, newbob_multi_update_interval=1)
    return [
        row("relative", "newbob"),
        row(
            "relative-growth",
            "newbob",
            newbob_learning_rate_growth=1.25,
            learning_rate_decay=0.7,
        ),
        row("relative-threshold", "newbob", newbob_relative_error_threshold=-0.1),
        row(
            "relative-old",
            "newbob",
            newbob_relative_error_div_by_old=True,
            newbob_relative_error_threshold=-0.2,
        ),
        row(
            "relative-rate",
            "newbob",
            learning_rate_control_relative_error_relative_lr=True,
            newbob_relative_error_threshold=-0.1,
        ),
        row(
            "relative-min",
            "newbob",
            min_learning_rate=0.03,
            newbob_learning_rate_growth=1.1,
        ),
        row(
            "relative-hold",
            "newbob",
            learning_rate_control_min_num_epochs_per_new_lr=3,
            newbob_learning_rate_growth=1.1,
        ),
        row("relative-signs", "newbob", SIGNS),
        row("relative-holes", "newbob", holes, newbob_learning_rate_growth=1.1),
        row("relative-rates", "newbob", rates=[0.01, 0.02, 0.05, 0.08]),
        row("relative-some-rates", "newbob", rates={4: 0.05, 9: 0.2}),
        row("absolute", "newbob_abs"),
        row(
            "absolute-threshold",
            "newbob_abs",
            newbob_error_threshold=-0.1,
            newbob_learning_rate_growth=1.1,
        ),
        row("absolute-holes", "newbob_abs", holes),
        row("multi", "newbob_multi_epoch"),
        row("multi-3", "newbob_multi_epoch", newbob_multi_num_epochs=3),
        row(
            "multi-every",
            "newbob_multi_epoch",
            newbob_learning_rate_growth=1.1,
            newbob_relative_error_threshold=-0.15,
            **multi,
        ),
        row(
            "multi-grow",
            "newbob_multi_epoch",
            newbob_learning_rate_growth=1.1,
            newbob_relative_error_threshold=-0.05,
            newbob_relative_error_grow_threshold=-0.2,
            **multi,
        ),
        row(
            "multi-interval",
            "newbob_multi_epoch",
            newbob_multi_num_epochs=2,
            newbob_multi_update_interval=4,
            newbob_relative_error_threshold=-0.2,
        ),
        row(
            "multi-rate",
            "newbob_multi_epoch",
            learning_rate_control_relative_error_relative_lr=True,
            newbob_relative_error_threshold=-0.2,
            **multi,
        ),
        row("multi-holes", "newbob_multi_epoch", holes, **multi),
        row("multi-rates", "newbob_multi_epoch", rates={1: 0.3, 6: 0.25}, **multi),
        row("constant", "constant", rates={1: 0.3, 6: 0.25}),
    ]


def main():
    version = importlib.metadata.version("returnn")
    golden_schedules.write("newbob", f"returnn {version}", "generate_newbob.py", rows())


if __name__ == "__main__":
    main()
