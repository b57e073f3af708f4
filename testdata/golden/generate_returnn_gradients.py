"""Writes returnn_gradients.json: gradients as RETURNN's updater prepares them."""

import importlib.metadata
import types

import tensorflow as tf
from returnn.config import Config
from returnn.tf import updater
from returnn.util.basic import CollectionReadCheckCovered
from tensorflow.python.ops import clip_ops

import golden
import gradient_rows
import problem

v1 = tf.compat.v1

# clip_by_average_norm has numbers in float32, whatever the gradient is.
clip_ops.dtypes = types.SimpleNamespace(float32=tf.float64)
clip_ops.constant_op = types.SimpleNamespace(
    constant=lambda value, dtype=tf.float64, **args: tf.constant(value, dtype, **args)
)


def run(config, tagged):
    initial, gradients = problem.problem()
    optimizer = {"class": "momentum", "momentum": gradient_rows.MU}
    with tf.Graph().as_default(), v1.Session() as session:
        variables, fed = [], []
        for name, x in zip(gradient_rows.NAMES, initial, strict=True):
            v = v1.get_variable(name, initializer=tf.constant(x, tf.float64))
            if name in tagged:
                v.RETURNN_updater_opts = CollectionReadCheckCovered({"tags": ["tag"]})
            variables.append(v)
            fed.append(v1.placeholder(tf.float64, x.shape))
        loss = tf.add_n(
            [tf.reduce_sum(v * d) for v, d in zip(variables, fed, strict=True)]
        )
        u = updater.Updater(
            Config({**config, "optimizer": optimizer}),
            objective=loss,
            global_train_step_var=v1.get_variable(
                "step", initializer=tf.constant(0, tf.int64), trainable=False
            ),
        )
        u.set_trainable_vars(variables)
        session.run(v1.global_variables_initializer())
        u.init_optimizer_vars(session)
        u.set_learning_rate(gradient_rows.RATE, session)
        update = u.get_optim_op()
        values = []
        for grads in gradients:
            session.run(update, dict(zip(fed, grads, strict=True)))
            values.append(session.run(variables))
    return values


def main():
    v1.disable_v2_behavior()
    v1.enable_resource_variables()
    results = []
    for name, config, tagged, rules in gradient_rows.ROWS:
        reference = f"returnn.tf.updater.Updater with {config}"
        if tagged:
            reference += f", tags of {', '.join(tagged)}: tag"
        results.append((name, reference, rules, run(config, tagged)))
    version = importlib.metadata.version("returnn")
    source = f"returnn {version} with tensorflow {tf.__version__} (float64, CPU)"
    golden.write("returnn_gradients", source, "generate_returnn_gradients.py", results)


if __name__ == "__main__":
    main()
