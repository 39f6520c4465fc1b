"""Control flow in ONNX:  python3 control.py [FOLDER]

Writes onnx_loop (a Loop whose count and state the caller gives, with an If and a Loop inside, references by onnxruntime) and
the cases of ONNX's node suite that are kept as onnx_*, to FOLDER; the default is testdata/models.
"""
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnx.backend.test.loader import load_model_tests
from safetensors.numpy import save_file

CASES = ['gru_seq_length', 'if', 'lstm_reverse', 'lstm_with_peepholes', 'scan9_multi_state', 'scan9_scalar', 'scan_sum']

F, I, B = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


def graph(name, nodes, inputs, outputs, constants=()):
    info = lambda vs: [helper.make_tensor_value_info(n, t, s) for n, t, s in vs]
    return helper.make_graph(nodes, name, info(inputs), info(outputs), [numpy_helper.from_array(np.array(v), n) for n, v in constants])


def loop():
    "y: x, changed count times by a branch and an inner loop of i steps, until its sum is too large; n: all steps."
    node = helper.make_node
    x = lambda name: (name, F, [2, 3])
    then = graph('then', [node('Add', ['x1', 'x'], ['t'])], [], [x('t')])
    otherwise = graph('else', [node('Mul', ['x1', 'half'], ['e'])], [], [x('e')])
    inner = graph('inner', [
        node('Add', ['x2', 'w'], ['x3']), node('Add', ['n2', 'one'], ['n3']), node('Identity', ['c2'], ['c3'])],
        [('j', I, []), ('c2', B, []), x('x2'), ('n2', I, [])], [('c3', B, []), x('x3'), ('n3', I, [])])
    body = graph('body', [
        node('Mod', ['i', 'two'], ['parity']), node('Equal', ['parity', 'zero'], ['even']),
        node('If', ['even'], ['x1b'], then_branch=then, else_branch=otherwise),
        node('Loop', ['i', '', 'x1b', 'n1'], ['x4', 'n4'], body=inner),
        node('ReduceSum', ['x4'], ['sum'], keepdims=0), node('Less', ['sum', 'limit'], ['c4'])],
        [('i', I, []), ('c1', B, []), x('x1'), ('n1', I, [])], [('c4', B, []), x('x4'), ('n4', I, [])])
    main = graph('main', [node('Loop', ['count', 'go', 'x', 'zero'], ['y', 'n'], body=body)],
                 [('count', I, []), x('x'), ('w', F, [3])], [x('y'), ('n', I, [])],
                 [('go', True), ('zero', 0), ('one', 1), ('two', 2), ('half', np.float32(0.5)), ('limit', np.float32(100))])
    model = helper.make_model(main, opset_imports=[helper.make_opsetid('', 17)], ir_version=8)
    onnx.checker.check_model(model, full_check=True)
    return model


def references(model, folder):
    session = onnxruntime.InferenceSession(model.SerializeToString())
    x, w = np.linspace(-1, 2, 6, dtype=np.float32).reshape(2, 3), np.array([0.5, 1, -0.25], np.float32)
    for word, count in [('', 6), ('_times0', 0), ('_times1', 1), ('_times90', 90)]:
        inputs = {'count': np.array(count), 'x': x, 'w': w}
        tensors = {f'in.{i}': v for i, v in enumerate(inputs.values())}
        tensors |= {f'out.{i}': np.array(v) for i, v in enumerate(session.run(None, inputs))}
        save_file(tensors, folder / f'io{word}.safetensors')


def main(argv):
    root = Path(argv[0]) if argv else Path(__file__).parent.parent / 'models'
    folder = root / 'onnx_loop'
    folder.mkdir(parents=True, exist_ok=True)
    model = loop()
    onnx.save(model, folder / 'model.onnx')
    references(model, folder)
    for case in load_model_tests(kind='node'):
        name = case.name.removeprefix('test_')
        if name not in CASES:
            continue
        folder = root / f'onnx_{name}'
        folder.mkdir(parents=True, exist_ok=True)
        onnx.save(case.model, folder / 'model.onnx')
        inputs, outputs = case.data_sets[0]
        tensors = {f'in.{i}': np.array(v) for i, v in enumerate(inputs)} | {f'out.{i}': np.array(v) for i, v in enumerate(outputs)}
        save_file(tensors, folder / 'io.safetensors')


if __name__ == '__main__':
    main(sys.argv[1:])
