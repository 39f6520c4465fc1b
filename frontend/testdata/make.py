"""Writes branch_on_size.onnx: what TorchScript makes of x.squeeze(1), an If on the size of x's axis 1."""
from pathlib import Path

import onnx
from onnx import TensorProto, helper

F, N = TensorProto.FLOAT, TensorProto.INT64
squeeze = helper.make_graph([helper.make_node('Squeeze', ['x', 'one'], ['s'])], 'then', [], [helper.make_tensor_value_info('s', F, None)])
keep = helper.make_graph([helper.make_node('Identity', ['x'], ['k'])], 'else', [], [helper.make_tensor_value_info('k', F, None)])
nodes = [
    helper.make_node('Shape', ['x'], ['shape'], start=1),
    helper.make_node('Equal', ['shape', 'one'], ['equal']),
    helper.make_node('Squeeze', ['equal'], ['condition']),
    helper.make_node('If', ['condition'], ['y'], then_branch=squeeze, else_branch=keep),
]
graph = helper.make_graph(nodes, 'branch_on_size', [helper.make_tensor_value_info('x', F, ['batch', 'channels'])],
                          [helper.make_tensor_value_info('y', F, None)], [helper.make_tensor('one', N, [1], [1])])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid('', 18)], ir_version=8)
(Path(__file__).parent / 'branch_on_size.onnx').write_bytes(model.SerializeToString(deterministic=True))
