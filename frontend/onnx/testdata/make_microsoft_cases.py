"""Writes cases of onnxruntime's own operators in the form of ONNX's backend suite, with
onnxruntime's results: python make_microsoft_cases.py DIR. Needs onnx, onnxruntime and numpy."""
import json
import os
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

ROOT = sys.argv[1]
rng = np.random.default_rng(0)


def f32(*shape):
    return rng.standard_normal(shape).astype(np.float32)


def case(name, op, inputs, outputs=1, domain="com.microsoft", rtol=1e-3, atol=1e-5, **attributes):
    names = [f"i{k}" if x is not None else "" for k, x in enumerate(inputs)]
    outs = [f"o{k}" for k in range(outputs)] if isinstance(outputs, int) else outputs
    node = helper.make_node(op, names, outs, domain=domain, **attributes)
    infos = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape) for n, x in zip(names, inputs) if n]
    graph = helper.make_graph([node], op, infos, [helper.make_empty_tensor_value_info(o) for o in outs if o])
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    results = session.run(None, {n: x for n, x in zip(names, inputs) if n})
    folder = os.path.join(ROOT, "test_microsoft_" + name)
    os.makedirs(os.path.join(folder, "test_data_set_0"), exist_ok=True)
    onnx.save(model, os.path.join(folder, "model.onnx"))
    with open(os.path.join(folder, "data.json"), "w") as f:
        json.dump({"rtol": rtol, "atol": atol}, f)
    given = [(n, x) for n, x in zip(names, inputs) if n]
    for kind, values in (("input", given), ("output", list(zip([o for o in outs if o], results)))):
        for k, (n, v) in enumerate(values):
            with open(os.path.join(folder, "test_data_set_0", f"{kind}_{k}.pb"), "wb") as f:
                f.write(numpy_helper.from_array(np.asarray(v), n).SerializeToString())


case("gelu", "Gelu", [f32(3, 4)])
case("fast_gelu", "FastGelu", [f32(3, 4), f32(4)])
case("bias_gelu", "BiasGelu", [f32(3, 4), f32(4)])
case("quick_gelu", "QuickGelu", [f32(3, 4)], alpha=1.5)
case("fused_matmul", "FusedMatMul", [f32(2, 4, 3), f32(2, 5, 4)], transA=1, transB=1, alpha=0.5)
case("skip_layer_norm", "SkipLayerNormalization", [f32(2, 3, 8), f32(2, 3, 8), f32(8), f32(8), f32(8)], outputs=["o0", "", "", "o3"], epsilon=1e-5)
case("skip_rms_norm", "SkipSimplifiedLayerNormalization", [f32(2, 3, 8), f32(2, 3, 8), f32(8)], outputs=["o0", "", "", "o3"], epsilon=1e-5)
case("rms_norm", "SimplifiedLayerNormalization", [f32(2, 3, 8), f32(8)], domain="", axis=-1, epsilon=1e-5)
case("rotary", "RotaryEmbedding", [f32(2, 3, 16), np.array([[0, 1, 2], [4, 5, 6]], np.int64), f32(8, 4), f32(8, 4)], num_heads=2)
case("rotary_offset", "RotaryEmbedding", [f32(2, 2, 3, 8), np.array([2], np.int64), f32(8, 4), f32(8, 4)], interleaved=1)
case("multi_head_attention", "MultiHeadAttention", [f32(2, 3, 8), f32(2, 5, 8), f32(2, 5, 8)], num_heads=2)
packed = rng.integers(0, 256, (6, 2, 8)).astype(np.uint8)
case("matmul_4bits", "MatMulNBits", [f32(3, 32), packed, f32(12)], K=32, N=6, bits=4, block_size=16)
case("matmul_4bits_zero", "MatMulNBits", [f32(3, 32), packed, f32(12), rng.integers(0, 256, 6).astype(np.uint8)], K=32, N=6, bits=4, block_size=16)
w = rng.integers(-128, 128, (8, 5)).astype(np.int8)
case("dynamic_quantize_matmul", "DynamicQuantizeMatMul", [f32(3, 8), w, np.array([0.02], np.float32), np.array([0], np.int8), f32(5)])
x = rng.integers(0, 256, (3, 8)).astype(np.uint8)
case("matmul_integer_to_float", "MatMulIntegerToFloat",
     [x, w, np.array(0.1, np.float32), np.array(0.02, np.float32), np.array(120, np.uint8), np.array(0, np.int8), f32(5)])
iw = rng.integers(-128, 128, (2, 6, 16)).astype(np.int8)
ir = rng.integers(-128, 128, (2, 4, 16)).astype(np.int8)
scale = np.array([0.01, 0.02], np.float32)
zero = np.zeros(2, np.int8)
case("dynamic_quantize_lstm", "DynamicQuantizeLSTM",
     [f32(3, 2, 6), iw, ir, f32(2, 32), None, None, None, None, scale, zero, scale, zero], outputs=3, rtol=1e-2, atol=1e-2, hidden_size=4, direction="bidirectional")
