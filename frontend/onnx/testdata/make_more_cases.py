"""Cases of operators that ONNX's node suite has few of:  python3 make_more_cases.py FOLDER

They are folders as onnx.backend.test writes them. Results are those of onnxruntime, and of ONNX's reference evaluator for what
onnxruntime lacks (FlexAttention, and Binarizer of integers).
"""
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

rng = np.random.default_rng(5)
TYPES = {np.dtype(n): getattr(TensorProto, t) for n, t in
         {'float32': 'FLOAT', 'float16': 'FLOAT16', 'float64': 'DOUBLE', 'int64': 'INT64', 'int32': 'INT32'}.items()}


def info(name, value):
    return helper.make_tensor_value_info(name, TYPES[value.dtype], value.shape)


def model(node, inputs, result, constants=()):
    graph = helper.make_graph([node], 'graph', [info(n, v) for n, v in inputs.items()],
                              [helper.make_tensor_value_info('y', TYPES[np.dtype(result)], None)],
                              [numpy_helper.from_array(v, n) for n, v in constants])
    domains = [('', 26), ('ai.onnx.ml', 1), ('ai.onnx.preview', 1)] if node.op_type == 'FlexAttention' else [('', 13), ('ai.onnx.ml', 1)]
    return helper.make_model(graph, opset_imports=[helper.make_opsetid(d, v) for d, v in domains], ir_version=10)


def write(folder, m, inputs, outputs):
    data = folder / 'test_data_set_0'
    data.mkdir(parents=True, exist_ok=True)
    onnx.save(m, folder / 'model.onnx')
    for kind, values in (('input', inputs.values()), ('output', outputs)):
        for i, v in enumerate(values):
            (data / f'{kind}_{i}.pb').write_bytes(numpy_helper.from_array(v, f'{kind}_{i}').SerializeToString())


def by_onnxruntime(root, name, node, inputs, result):
    m = model(node, inputs, result)
    write(root / f'test_more_{name}', m, inputs, onnxruntime.InferenceSession(m.SerializeToString()).run(None, inputs))


def tf_idf(root):
    "Three n-grams of one element, four of two, two of three, at the coordinates of each case."
    pool = [0, 1, 2, 0, 1, 1, 1, 2, 0, 1, 2, 0, 1, 2, 1, 1, 1]
    apart, joint, gaps = [4, 2, 0, 8, 6, 1, 3, 5, 7], [4, 2, 0, 6, 6, 1, 3, 5, 6], [4, 2, 0, 10, 6, 1, 3, 5, 7]
    weights = [0.5, 2.25, 1.5, 0.75, 3, 1.25, 0.25, 2, 1]
    for i, (mode, lengths, skips, indexes, shape, weighted) in enumerate([
            ('TF', (1, 2), 3, joint, (3, 7), False), ('TF', (2, 3), 2, gaps, (7,), False), ('IDF', (1, 3), 9, apart, (3, 7), True),
            ('IDF', (2, 3), 1, joint, (3, 7), False), ('TFIDF', (1, 3), 1, apart, (3, 7), True), ('TFIDF', (1, 2), 2, joint, (7,), True)]):
        attributes = {'weights': weights} if weighted else {}
        node = helper.make_node('TfIdfVectorizer', ['x'], ['y'], mode=mode, min_gram_length=lengths[0], max_gram_length=lengths[1],
                                max_skip_count=skips, ngram_counts=[0, 3, 11], ngram_indexes=indexes, pool_int64s=pool, **attributes)
        x = rng.integers(0, 3, size=shape).astype([np.int64, np.int32][i % 2])
        by_onnxruntime(root, f'tfidf_{mode.lower()}_{i}', node, {'x': x}, np.float32)


def classical(root):
    for name, dtype, threshold in [('i64', np.int64, 0.5), ('i32', np.int32, -0.5), ('f64', np.float64, 0.)]:
        x = (rng.standard_normal((4, 5)) * 2).astype(dtype)
        node = helper.make_node('Binarizer', ['x'], ['y'], domain='ai.onnx.ml', threshold=threshold)
        m = model(node, {'x': x}, dtype)
        write(root / f'test_more_binarizer_{name}', m, {'x': x}, ReferenceEvaluator(m).run(None, {'x': x}))
    for name, shape, at in [('vector', (6,), [1, 4, 4]), ('cube', (2, 3, 5), [4, 0]), ('row', (3, 4), [[2, 1, 0]])]:
        node = helper.make_node('ArrayFeatureExtractor', ['x', 'at'], ['y'], domain='ai.onnx.ml')
        by_onnxruntime(root, f'features_{name}', node, {'x': rng.standard_normal(shape).astype(np.float32), 'at': np.array(at)}, np.float32)


def flex(root, name, dtype, precision, query, key, value, mods=True, outer=False, **attributes):
    "Attention with capped, biased scores and halved probabilities; the bias comes from the outer graph where the case says so."
    inputs = {n: rng.standard_normal(s).astype(dtype) for n, s in (('q', query), ('k', key), ('v', value))}
    constant = lambda name, v: numpy_helper.from_array(np.array(v, precision), name)
    bias = rng.standard_normal((query[1], 1, key[2])).astype(precision)

    def graph(name, nodes, constants):
        open_type = lambda n: helper.make_tensor_value_info(n, TYPES[np.dtype(precision)], ['B', 'H', 'L', 'S'])
        return helper.make_graph(nodes, name, [open_type('in')], [open_type('out')], constants)

    def build(outer):
        if mods:
            own = [constant('cap', 2)] + ([] if outer else [numpy_helper.from_array(bias, 'bias')])
            attributes['score_mod'] = graph('score_mod', [
                helper.make_node('Div', ['in', 'cap'], ['a']), helper.make_node('Tanh', ['a'], ['b']),
                helper.make_node('Mul', ['b', 'cap'], ['c']), helper.make_node('Add', ['c', 'bias'], ['out'])], own)
            attributes['prob_mod'] = graph('prob_mod', [helper.make_node('Mul', ['in', 'half'], ['out'])], [constant('half', 0.5)])
        node = helper.make_node('FlexAttention', list(inputs), ['y'], domain='ai.onnx.preview', **attributes)
        return model(node, inputs, dtype, [('bias', bias)] if outer else [])

    # The reference evaluator does not see the outer graph's values in these subgraphs.
    write(root / f'test_more_flex_{name}', build(outer), inputs, ReferenceEvaluator(build(False)).run(None, inputs))


def main(root):
    tf_idf(root)
    classical(root)
    one, six = (1, 2, 5, 8), (1, 2, 6, 8)
    flex(root, 'groups', np.float32, np.float32, (2, 4, 5, 8), (2, 2, 6, 8), (2, 2, 6, 3), mods=False)
    flex(root, 'groups_mods', np.float32, np.float32, (2, 4, 5, 8), (2, 2, 6, 8), (2, 2, 6, 3), scale=0.3)
    flex(root, 'f16', np.float16, np.float32, one, six, six)
    flex(root, 'f16_in_f16', np.float16, np.float16, one, six, six, softmax_precision=TensorProto.FLOAT16)
    flex(root, 'f32_in_f64', np.float32, np.float64, one, six, six, softmax_precision=TensorProto.DOUBLE)
    flex(root, 'f64', np.float64, np.float64, one, six, six)
    flex(root, 'outer', np.float32, np.float32, one, six, six, outer=True)


if __name__ == '__main__':
    main(Path(sys.argv[1]))
