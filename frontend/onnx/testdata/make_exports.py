"""Writes small models with open dims in exports/, by both of torch's ONNX exporters, with the results of onnxruntime for
several sizes. Needs torch, onnx, onnxruntime, onnxscript, safetensors."""
import os

import numpy as np
import onnx
import onnxruntime
import torch
from safetensors.numpy import save_file
from torch import nn
from torch.nn import functional as F

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "exports")
torch.manual_seed(0)
rng = np.random.default_rng(0)


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(4, 4, 2, bidirectional=True, batch_first=True)
        self.gru = nn.GRU(8, 4)

    def forward(self, x):
        return self.gru(self.lstm(x)[0])


class Sizes(nn.Module):
    def forward(self, x):
        return (F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False),
                F.interpolate(x, size=(x.shape[2] * 3, x.shape[3]), mode="nearest"), F.adaptive_avg_pool2d(x, 1))


class Mixed(nn.Module):
    def forward(self, x):
        b, t, c = x.shape
        y = x.view(b, t, 2, c // 2).transpose(1, 2).reshape(b * 2, t, c // 2)
        mask = torch.triu(torch.ones(t, t), 1).bool()
        w = (y @ y.transpose(1, 2)).masked_fill(mask, float("-inf")).softmax(-1)
        z = torch.cat([w @ y, y], -1).chunk(2, -1)
        index = torch.arange(t).unsqueeze(0).expand(b, t)
        g = torch.gather(x, 1, index.unsqueeze(-1).expand(b, t, c))
        return (z[0] + z[1], g.flip(1), x[:, 1:, ::2], x[:, -1], torch.einsum("btc,bsc->bts", x, x), x.topk(2, -1)[0],
                F.pad(x, (1, 2), value=1.0), x.std(1), x.cumsum(1), torch.where(x > 0, x, -x).clamp(0, 1))


class Convolutions(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Conv2d(3, 4, 3, 2, 1), nn.BatchNorm2d(4), nn.SiLU(), nn.ConvTranspose2d(4, 4, 3, 2, 1, output_padding=1),
                         nn.GroupNorm(2, 4), nn.GELU(), nn.MaxPool2d(3, 2, 1, ceil_mode=True), nn.AvgPool2d(2, ceil_mode=True, count_include_pad=False),
                         nn.PixelShuffle(2), nn.InstanceNorm2d(1, affine=True), nn.Upsample(scale_factor=2), nn.Hardswish(), nn.Flatten())


CASES = [
    ("recurrent", Recurrent(), {0: "batch", 1: "time"}, [(2, 5, 4), (3, 70, 4)], [("old", 13), ("new", 18)]),
    ("sizes", Sizes(), {0: "batch", 2: "height", 3: "width"}, [(2, 3, 8, 8), (1, 3, 5, 6)], [("old", 11), ("new", 18)]),
    ("mixed", Mixed(), {0: "batch", 1: "time"}, [(2, 5, 8), (3, 7, 8)], [("old", 17), ("new", 23)]),
    ("convolutions", Convolutions(), {0: "batch"}, [(2, 3, 16, 16), (3, 3, 16, 16)], [("old", 11), ("new", 18)]),
]

os.makedirs(ROOT, exist_ok=True)
for name, module, dims, shapes, exporters in CASES:
    module.eval()
    example = torch.randn(shapes[0])
    for exporter, opset in exporters:
        base = os.path.join(ROOT, f"{name}_{exporter}{opset}")
        if exporter == "old":
            torch.onnx.export(module, (example,), base + ".onnx", opset_version=opset, dynamo=False, input_names=["x"], dynamic_axes={"x": dims})
        else:
            dynamic = ({k: torch.export.Dim(v) for k, v in dims.items()},)
            torch.onnx.export(module, (example,), base + ".onnx", opset_version=opset, dynamo=True, input_names=["x"], dynamic_shapes=dynamic,
                              external_data=False)
        model = onnx.load(base + ".onnx")
        for node in model.graph.node:  # stack traces hold the paths of this machine
            node.doc_string = ""
            del node.metadata_props[:]
        onnx.save(model, base + ".onnx")
        session = onnxruntime.InferenceSession(base + ".onnx", providers=["CPUExecutionProvider"])
        tensors = {}
        for i, shape in enumerate(shapes):
            x = rng.standard_normal(shape).astype(np.float32)
            tensors[f"{i}.in.0"] = x
            for k, v in enumerate(session.run(None, {"x": x})):
                tensors[f"{i}.out.{k}"] = np.ascontiguousarray(v)
        save_file(tensors, base + ".safetensors")
