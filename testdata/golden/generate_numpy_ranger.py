"""Writes numpy_ranger.json: Ranger and gradient centralisation in plain NumPy.

See generate_numpy.py for the form.
"""

import numpy as np

import generate_numpy
import golden
import ranger_rows


def _centralized(g, conv_only=False, keep_last=False):
    rank = np.ndim(g)
    if rank < (4 if conv_only else 2):
        return g
    kept = rank - 1 if keep_last else 0
    others = tuple(a for a in range(rank) if a != kept)
    if g.size == g.shape[kept]:
        return g
    return g - g.mean(axis=others, keepdims=True)


def centralize_gradients(o, t, state, w, g):
    """g - mean of g over all axes but one"""
    return _centralized(g, o["conv_only"], o["keep_last"])


def _ranger(o, t, state, w, g, belief):
    lr, wd, eps = o["learning_rate"], o["weight_decay"], o["epsilon"]
    b1, b2 = o["beta1"], o["beta2"]
    start, slow = w, state.get("slow", w)
    if o["decay"] == "coupled":
        g = g + wd * w
    elif o["decay"] == "rate":
        w = w * (1 - lr * wd)
    elif o["decay"] == "fixed":
        w = w * (1 - wd)
    if o["use_gc"] and o["gc_loc"]:
        g = _centralized(g, o["gc_conv_only"])
    m = state["m"] = b1 * state.get("m", 0.0) + (1 - b1) * g
    square = (g - m) ** 2 if belief else g**2
    v = b2 * state.get("v", 0.0) + (1 - b2) * square
    end = 2 / (1 - b2) - 1
    n = end - 2 * t * b2**t / (1 - b2**t)
    rate, u = 1 / (1 - b1**t), m
    if n > o["sma_threshold"]:
        if belief:
            v = v + eps
        r = (n - 4) * (n - 2) * end / ((end - 4) * (end - 2) * n)
        rate, u = np.sqrt(r * (1 - b2**t)) * rate, m / (np.sqrt(v) + eps)
    state["v"] = v
    if o["decay"] == "direction":
        u = u + wd * start
    if o["use_gc"] and not o["gc_loc"]:
        u = _centralized(u, o["gc_conv_only"])
    w = w - lr * rate * u
    if t % o["sync_period"] == 0:
        w = slow = slow + o["slow_step_size"] * (w - slow)
    state["slow"] = slow
    return start - w


def ranger(o, t, state, w, g):
    """RAdam's r and n; g' = g - mean; m' = b1*m + (1-b1)*g'; v' = b2*v + (1-b2)*g'**2;
    u = r*sqrt(1-b2**t)/(1-b1**t) * m'/(sqrt(v')+eps) where n > threshold, else
    m'/(1-b1**t); every k steps slow' = slow + alpha*(w-slow), w = slow'"""
    return _ranger(o, t, state, w, g, False)


def ranger_adabelief(o, t, state, w, g):
    """ranger with (g'-m')**2 for g'**2, and eps added to v' where n > threshold"""
    return _ranger(o, t, state, w, g, True)


def main():
    source = (
        f"independent NumPy {np.__version__} implementation of Ranger's formulas"
        " (float64)"
    )
    vars(generate_numpy).update(
        ranger=ranger,
        ranger_adabelief=ranger_adabelief,
        centralize_gradients=centralize_gradients,
    )
    results = []
    for name, rules in ranger_rows.of("numpy"):
        reference, values = generate_numpy.run(rules)
        results.append((name, reference, rules, values))
    golden.write("numpy_ranger", source, "generate_numpy_ranger.py", results)


if __name__ == "__main__":
    main()
