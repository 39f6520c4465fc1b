"""The programs of this folder in PyTorch: a function for each *.weft, of the same name, over the same inputs.

`weft bench NAME.weft --against torch --model torch_kernels.py:NAME` checks both against float64 and times both: eagerly
these are cuBLAS, cuDNN, PyTorch's own kernels; compiled, what Inductor makes of them."""

import torch
from torch.nn import functional as F


def gemm_bf16_nt(a, b):
    return a @ b.t()


def gemm_bf16_nn(a, b):
    return a @ b


def gemm_f32_nt(a, b):
    return a @ b.t()


def layer_norm(x, weight, bias):
    return F.layer_norm(x, (x.shape[-1],), weight, bias, 1e-5)


def softmax(x):
    return torch.softmax(x, -1)


def gelu_add(x):
    return F.gelu(x) + x


def negate(x):
    return -x


def conv_bf16(x, w):
    return F.conv2d(x, w, padding=1)


def attention_bf16(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)
