"""Writes random.onnx, a model of the operators that draw random numbers. Needs onnx."""

import os

import numpy as np
from onnx import TensorProto as T
from onnx import checker, helper, numpy_helper, save

nodes = [
    helper.make_node("RandomUniform", [], ["u"], shape=[1000], low=2.0, high=4.0, seed=1.0),
    helper.make_node("RandomNormal", [], ["n"], shape=[1000], mean=1.0, scale=2.0),
    helper.make_node("RandomUniformLike", ["x"], ["ul"], dtype=T.DOUBLE),
    helper.make_node("RandomNormalLike", ["x"], ["nl"]),
    helper.make_node("Bernoulli", ["x"], ["b"]),
    helper.make_node("Multinomial", ["logits"], ["m"], sample_size=500, dtype=T.INT64),
    helper.make_node("Dropout", ["x", "ratio", "training"], ["d", "mask"]),
]
inputs = [("x", T.FLOAT, [40, 25]), ("logits", T.FLOAT, [2, 3])]
outputs = [("u", T.FLOAT, [1000]), ("n", T.FLOAT, [1000]), ("ul", T.DOUBLE, [40, 25]), ("nl", T.FLOAT, [40, 25]),
           ("b", T.FLOAT, [40, 25]), ("m", T.INT64, [2, 500]), ("d", T.FLOAT, [40, 25]), ("mask", T.BOOL, [40, 25])]
graph = helper.make_graph(nodes, "random", [helper.make_tensor_value_info(*x) for x in inputs],
                          [helper.make_tensor_value_info(*x) for x in outputs],
                          [numpy_helper.from_array(np.array(0.4, np.float32), "ratio"), numpy_helper.from_array(np.array(True), "training")])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=10)
checker.check_model(model)
save(model, os.path.join(os.path.dirname(os.path.abspath(__file__)), "random.onnx"))
