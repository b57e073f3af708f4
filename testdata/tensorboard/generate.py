"""Writes the event file events.bin with TensorFlow's own protocol buffers and framing. The version is in README.md."""

import pathlib

import tensorflow as tf
from tensorflow.core.framework.summary_pb2 import Summary
from tensorflow.core.util.event_pb2 import Event


def summary(**values):
    return Summary(value=[Summary.Value(tag=t, simple_value=v) for t, v in values.items()])


long = "t" * 200  # lengths of two bytes
with tf.io.TFRecordWriter(str(pathlib.Path(__file__).with_name("events.bin"))) as w:
    for event in (
        Event(wall_time=1700000000.25, file_version="brain.Event:2"),
        Event(wall_time=1700000000.25, step=1, summary=summary(loss=0.1, größe=0.0)),
        Event(wall_time=1700000001.5, step=2**40, summary=summary(loss=float("inf"), **{long: -2.5})),
        Event(wall_time=1700000002, step=-1, summary=Summary()),
    ):
        w.write(event.SerializeToString())
