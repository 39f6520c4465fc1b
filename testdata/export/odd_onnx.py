"""Writes the ONNX files of testdata/odd:  python3 odd_onnx.py [FOLDER]

They are written as text, checked by onnx, and run by onnxruntime, or by onnx's own evaluator where onnxruntime refuses them.
"""
import sys
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import onnx.reference
import onnxruntime
import torch
from safetensors.torch import save_file

X = np.arange(6, dtype=np.float32).reshape(2, 3) / 4
CASES = {
    'onnx_input_is_output': ('g (float[2,3] x) => (float[2,3] x) {}', [X]),
    'onnx_weight_is_output': ('g (float[2,3] x) => (float[2,3] y, float[2] w) <float[2] w = {1, 2}> { y = Neg(x) }', [X]),
    'onnx_weight_is_input': ('g (float[2,3] x, float[3] w) => (float[2,3] y) <float[3] w = {1, 2, 3}> { y = Add(x, w) }', [X]),
    'onnx_unused': ('g (float[2,3] x, float[3] u) => (float[2,3] y) <float[2] v = {1, 2}> { dead = Exp(x) y = Neg(x) }', [X, X[0]]),
    'onnx_no_inputs': ('g () => (float[2] y) { c = Constant <value_floats = [1.0, 2.0]> () y = Exp(c) }', []),
    'onnx_left_out': ('''g (float[2,3] x) => (float[2,3] y, float[2,3] z, float[2,3] d) <float m = {0.5}> {
        y = Clip(x, , m) z = Clip(x, m) d, = Dropout(x) }''', [X]),
    'onnx_scalars': ('''g (float x, int64 k) => (float y, int64[1] s, float[1] u, int64 n) {
        y = Exp(x) shape = Shape(x) s = Unsqueeze(k, zero) u = Unsqueeze(x, zero) n = Size(x) }''', [np.float32(1.5), np.int64(3)]),
    'onnx_no_elements': ('''g (float[0,3] x, float[2,3] w) => (float[2,3] c, float[3] s, float[0,2] p, float[0] f) {
        c = Concat <axis = 0> (x, w) axes = Constant <value_ints = [0]> () s = ReduceSum <keepdims = 0> (x, axes)
        t = Transpose(w) p = MatMul(x, t) minus = Constant <value_ints = [-1]> () one = Constant <value_ints = [0]> () f = Reshape <allowzero = 1> (x, one) }''',
                         [np.zeros((0, 3), np.float32), X]),
    'onnx_branches_of_outside': ('''g (bool b, float[2,3] x) => (float[2,3] y) { h = Exp(x) y = If (b) <
        then_branch = t () => (float[2,3] p) { p = Identity(h) }, else_branch = e () => (float[2,3] q) { q = Identity(x) }> }''', [np.bool_(True), X]),
    'onnx_no_iterations': ('''g (float[2,3] x) => (float[2,3] y) { n = Constant <value_int = 0> () y = Loop (n, , x) <
        body = l (int64 i, bool c, float[2,3] v) => (bool d, float[2,3] w) { d = Identity(c) w = Exp(v) }> }''', [X]),
    'onnx_far_slices': ('''g (float[2,3] x) => (float[2,3] a, float[2,2] b, float[2,0] e) {
        zero = Constant <value_ints = [0, 0]> () far = Constant <value_ints = [9223372036854775807, 9223372036854775807]> () a = Slice(x, zero, far)
        last = Constant <value_ints = [-1]> () low = Constant <value_ints = [-9223372036854775808]> () axis = Constant <value_ints = [-1]> ()
        back = Constant <value_ints = [-2]> () b = Slice(x, last, low, axis, back) e = Slice(x, last, last, axis) }''', [X]),
    'onnx_same_names_inside': ('''g (bool b, float[2,3] x) => (float[2,3] y) { y = If (b) <
        then_branch = t () => (float[2,3] p) { h = Exp(x) p = Neg(h) }, else_branch = e () => (float[2,3] p2) { h2 = Neg(x) p2 = Exp(h2) }> }''', [np.bool_(False), X]),
}


def run(model, ins):
    feeds = dict(zip([i.name for i in model.graph.input if i.name not in {w.name for w in model.graph.initializer}], ins))
    try:
        return onnxruntime.InferenceSession(model.SerializeToString(), providers=['CPUExecutionProvider']).run(None, feeds)
    except Exception:
        return onnx.reference.ReferenceEvaluator(model).run(None, feeds)


def main(argv):
    root = Path(argv[0]) if argv else Path(__file__).parent.parent / 'odd'
    root.mkdir(parents=True, exist_ok=True)
    for name, (text, ins) in CASES.items():
        if name == 'onnx_scalars':
            text = text.replace('{\n', '{ zero = Constant <value_ints = [0]> ()\n', 1)
        try:
            model = onnx.parser.parse_model('<ir_version: 8, opset_import: ["" : 18]> ' + text)
            outs = run(model, ins)
            found = {f'in.{i}': v for i, v in enumerate(ins)} | {f'out.{i}': v for i, v in enumerate(outs)}
            (root / f'{name}.onnx').write_bytes(model.SerializeToString())
            save_file({k: torch.from_numpy(np.array(v)).contiguous() for k, v in found.items()}, root / f'{name}.safetensors')
        except Exception as e:
            print(f'{name}: FAILED: {type(e).__name__}: {str(e)[:300]}', flush=True)


if __name__ == '__main__':
    main(sys.argv[1:])
