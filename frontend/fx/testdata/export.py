"""Writes testdata/models: models of what the repository's common fixtures lack, with outputs that torch computed.

Run with torch 2.15, transformers and safetensors: python export.py [NAME...]
"""
import pathlib
import re
import sys
import zipfile

import torch
import transformers.integrations.moe  # its operators
from safetensors.torch import save_file
from torch import nn

A = torch.ops.aten
HERE = pathlib.Path(__file__).parent / 'models'


def without_samples(path):
    "Drops the pickled sample inputs and cuts source paths, so that the file does not depend on where it was made."
    parts = {}
    with zipfile.ZipFile(path) as z:
        for name in z.namelist():
            if 'sample_inputs' not in name and 'serialization_id' not in name:
                parts[name] = z.read(name)
    with zipfile.ZipFile(path, 'w') as z:
        for name, data in parts.items():
            if name.endswith('models/model.json'):
                data = re.sub(rb'File \\"[^"]*?/([^/"]+)\\"', rb'File \\"\1\\"', data)
            z.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), data)


def case(name, net, *inputs):
    if len(sys.argv) > 1 and name not in sys.argv:
        return
    folder = HERE / name
    folder.mkdir(parents=True, exist_ok=True)
    exported = torch.export.export(net, inputs)
    torch.export.save(exported, folder / 'model.pt2')
    without_samples(folder / 'model.pt2')
    io = {f'in.{i}': t.clone() for i, t in enumerate(inputs)}
    before = {n: b.clone() for n, b in net.named_buffers()}
    with torch.no_grad():
        outputs = torch.utils._pytree.tree_leaves(net(*inputs))
    io |= {f'out.{i}': t.contiguous().clone() for i, t in enumerate(outputs)}
    io |= {f'after.state.{n}': b.clone() for n, b in net.named_buffers() if not b.equal(before[n])}
    save_file(io, folder / 'io.safetensors')


class Gradients(nn.Module):
    "Gradients that joint programs call, by operator."

    def forward(self, x, dy, image, w, dimage, dgrouped, q, k, dq):
        out = [A.gelu_backward(dy, x), A.gelu_backward(dy, x, approximate='tanh'), A.silu_backward(dy, x),
               A.sigmoid_backward(dy, x.sigmoid()), A.tanh_backward(dy, x.tanh()), A.threshold_backward(dy, x, 0),
               A._softmax_backward_data(dy, x.softmax(-1), -1, torch.float32),
               A._log_softmax_backward_data(dy, x.log_softmax(0), 0, torch.float32)]
        y, mean, rstd = A.native_layer_norm(x, [8], w[0, 0, 0, :1].expand(8), None, 1e-5)
        out += A.native_layer_norm_backward(dy, x, [8], mean, rstd, w[0, 0, 0, :1].expand(8), None, [True, True, False])[:2]
        out += A.convolution_backward(dimage, image, w, [4], [2, 2], [1, 1], [1, 1], False, [0, 0], 1, [True, True, True])
        grouped = w[:, :1]
        out += A.convolution_backward(dgrouped, image, grouped, None, [1, 2], [0, 2], [2, 1], False, [0, 0], 2, [True, True, False])[:2]
        out += [A.avg_pool2d_backward(A.avg_pool2d(image, 3, 2, 1), image, [3, 3], [2, 2], [1, 1], False, True, None)]
        pooled, places = A.max_pool2d_with_indices(image, 3, 2, 1)
        out += [places, A.max_pool2d_with_indices_backward(pooled, image, [3, 3], [2, 2], [1, 1], [1, 1], False, places)]
        attended, sums = A._scaled_dot_product_flash_attention_for_cpu(q, k, k, 0.0, False, attn_mask=None, scale=0.3)
        return out + [attended, sums] + list(A._scaled_dot_product_flash_attention_for_cpu_backward(
            dq, q, k, k, attended, sums, 0.0, False, attn_mask=None, scale=0.3))


class MoreGradients(nn.Module):
    "Gradients of query heads that share keys, of normalised weights, and of products with the weights of groups of rows."

    def forward(self, q, k, dq, mask, v, g, dv, x, weight, dy):
        attended, sums = A._scaled_dot_product_flash_attention_for_cpu(q, k, k, 0.0, False, attn_mask=mask)
        out = [attended] + list(A._scaled_dot_product_flash_attention_for_cpu_backward(dq, q, k, k, attended, sums, 0.0, False, attn_mask=mask))
        for dim in 0, 2:
            grown = g if dim == 0 else g.mT.reshape(1, 1, -1)
            w, norms = A._weight_norm_interface(v, grown, dim)
            out += [w] + list(A._weight_norm_interface_backward(dv, v, grown, norms, dim))
        ends = torch.tensor([2, 2, 5], dtype=torch.int32)
        return out + list(torch.ops.transformers.grouped_mm_fallback_backward(x, weight, ends, dy))


class Complex(nn.Module):
    "Complex numbers of another type, and on another device as models move their rotary positions."

    def forward(self, x):
        z = torch.view_as_complex(x)
        wide = z.to(torch.complex128) * z.to('cpu')
        return torch.view_as_real(wide), torch.view_as_real(wide.to(torch.complex64) * z.to('cpu', torch.complex64))


class Recurrent(nn.Module):
    "Networks over short sequences, whose steps are written out, and over a long one, which is a loop."

    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(6, 5, 2, batch_first=True, bidirectional=True)
        self.gru, self.rnn = nn.GRU(6, 5, bidirectional=True), nn.RNN(6, 4, nonlinearity='relu', bias=False)
        self.long = nn.LSTM(3, 2, bidirectional=True)

    def forward(self, x, long):
        return self.lstm(x), self.gru(x), self.rnn(x), self.long(long)


class Control(nn.Module):
    "Branches, loops, and regions with gradients switched off or a narrow type switched on."

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x, n):
        y = torch.cond(x.sum() > 0, lambda x: x * 2, lambda x: x + self.linear.bias, (x,))
        count, z = torch.while_loop(lambda i, z: i < n, lambda i, z: (i + 1, z * 1.5 + y), (torch.zeros((), dtype=torch.int64), x))
        with torch.no_grad():
            w = x.clone()
            w[0].mul_(3)
        with torch.autocast('cpu', dtype=torch.bfloat16):
            v = torch.relu(self.linear(x)) + x
        return y, count, z, w, v


class Training(nn.Module):
    "Running statistics that move, and a cache that is written in place."

    def __init__(self):
        super().__init__()
        self.norm, self.instance = nn.BatchNorm2d(3), nn.InstanceNorm1d(3, affine=True, track_running_stats=True)
        self.register_buffer('cache', torch.zeros(2, 6, 3))

    def forward(self, x, at):
        self.cache.index_copy_(1, at, x[..., 0].mT[:, :2])
        self.cache[:, -1] += 1
        return self.norm(x).relu_(), self.instance(x[..., 0]), self.cache.sum(1)


torch.manual_seed(0)
randn = torch.randn
case('gradients', Gradients(), randn(4, 8), randn(4, 8), randn(2, 2, 7, 6), randn(4, 2, 3, 3), randn(2, 4, 4, 3), randn(2, 4, 3, 4),
     randn(1, 2, 5, 4), randn(1, 2, 6, 4), randn(1, 2, 5, 4))
case('more_gradients', MoreGradients(), randn(2, 4, 5, 4), randn(2, 2, 6, 4), randn(2, 4, 5, 4), randn(2, 1, 5, 6), randn(4, 3, 4), randn(4, 1, 1),
     randn(4, 3, 4), randn(6, 3), randn(3, 3, 4), randn(6, 4))
case('complex', Complex(), randn(3, 2))
case('recurrent', Recurrent().eval(), randn(3, 5, 6), randn(40, 2, 3))
case('control', Control().eval(), randn(4, 4), torch.tensor(3))
case('training', Training(), randn(2, 3, 4, 5), torch.tensor([1, 3]))
