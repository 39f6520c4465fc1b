"""Writes the files of testdata/odd: legal programs of shapes that exporters seldom write:  python3 odd.py [FOLDER [NAME...]]

NAME.pt2 is a program, NAME.safetensors has in.N and out.N, as testdata/README.md has them for models. Symbolic ints are tensors there,
complex numbers have a last dim of two.
"""
import copy
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch._higher_order_ops.associative_scan import associative_scan
from torch._higher_order_ops.map import map as torch_map
from torch._higher_order_ops.scan import scan
from torch.ao.quantization.fx import _decomposed  # noqa: F401, defines torch.ops.quantized_decomposed

import fixture

CASES = {}


def case(*args, dynamic=None, strict=False):
    "Registers a module, or a function, to be exported with these arguments."
    def register(make):
        CASES[make.__name__] = make, args, dynamic, strict
        return make
    return register


class Function(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args):
        return self.function(*args)


@dataclass
class Pair:
    left: torch.Tensor
    right: dict


torch.export.register_dataclass(Pair, serialized_type_name='odd.Pair')


x = torch.arange(6.0).reshape(2, 3) / 4
n = torch.export.Dim('n', min=2, max=16)


@case(x)
def input_is_output(x):
    return x


@case(x)
def twice(x):
    y = x + 1
    return y, y, x, x


@case(x, torch.ones(4))
def unused_input(x, y):
    return x * 2


@case(x, torch.ones(4))
def nothing_used(x, y):
    return torch.arange(3)


@case()
def no_inputs():
    return torch.full((2, 2), 3.0)


@case(x)
def numbers_out(x):
    return x + 1, 3, None, 2.5, True, 'text'


@case(x)
def nothing_out(x):
    return None


@case(x)
def nested_out(x):
    return {'a': [x + 1, (x * 2,)], 'b': {'c': x - 1}}


@case({'a': x, 'b': [x + 1, {'c': x + 2}]}, (x, (x * 3,)))
def nested_in(d, t):
    return d['a'] + d['b'][0] * d['b'][1]['c'] - t[0] * t[1][0]


@case(Pair(x, {'k': x + 1}))
def dataclass_in(p):
    return Pair(p.left * 2, {'z': p.right['k'] + p.left})


@case(x, 3, 2.5, True, 'text', None)
def numbers_in(x, i, f, b, s, none):
    return x * i + f if b and s == 'text' and none is None else x


@case(x, 5, dynamic=({0: n}, torch.export.Dim.DYNAMIC))
def symbolic_int_in(x, k):
    return x * k


@case(x, 5, dynamic=({0: n}, torch.export.Dim.DYNAMIC))
def symbolic_size_in(x, k):
    return torch.zeros(k) + x.sum(), k


@case(torch.randn(4, 3), dynamic=({0: n},))
def symbolic_int_out(x):
    return x + 1, x.shape[0], x.shape[0] * 2 + 1


@case(torch.randn(4, 3), torch.randn(5, 3), torch.randn(6, 3), dynamic=tuple({0: torch.export.Dim(c, min=2, max=16)} for c in 'abc'))
def symbolic_sums(x, y, z):
    k = x.shape[0] + y.shape[0] + z.shape[0]
    most, least = torch.sym_max(x.shape[0], y.shape[0]), torch.sym_min(x.shape[0], z.shape[0])
    return x.new_zeros(k), x.new_ones(most), x.new_ones(least), torch.cat([x, y, z])[:least]


@case(torch.tensor(2.5), torch.tensor(3))
def scalars(x, k):
    return x * k, x.reshape(1), k + 1


@case(torch.randn(0, 3), torch.randn(2, 0))
def no_elements(x, y):
    return x + 1, x.sum(0), torch.cat([x, x]), y.sum(1), y @ torch.zeros(0, 4), y.t()


class WeightViews(torch.nn.Module):
    "Parameters that are no plain row-major tensors of their own."

    def __init__(self):
        super().__init__()
        base = torch.arange(24.0).reshape(4, 6)
        self.turned = torch.nn.Parameter(base.t())
        self.part = torch.nn.Parameter(base[1:, ::2])
        self.wide = torch.nn.Parameter(base[:1].expand(3, 6))
        self.scalar = torch.nn.Parameter(torch.tensor(2.0))
        self.empty = torch.nn.Parameter(torch.zeros(0, 4))

    def forward(self, x):
        return x @ self.turned.t()[:3] * self.scalar, self.part + x[:1], self.wide, self.empty


@case(x)
def weight_views():
    return WeightViews()


class Tied(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a = torch.nn.Linear(3, 3, bias=False)
        self.b = torch.nn.Linear(3, 3, bias=False)
        self.b.weight = self.a.weight
        self.c = torch.nn.Parameter(self.a.weight.detach()[:2])

    def forward(self, x):
        return self.b(self.a(x)) @ self.c.t()


@case(x)
def tied():
    return Tied()


class Buffers(torch.nn.Module):
    "A persistent buffer, one that is not, and a plain tensor, which becomes a constant."

    def __init__(self):
        super().__init__()
        self.register_buffer('kept', torch.ones(3))
        self.register_buffer('lost', torch.full((3,), 2.0), persistent=False)
        self.plain = torch.arange(300.0).reshape(100, 3)

    def forward(self, x):
        return x * self.kept + self.lost, x @ self.plain.t(), self.lost, self.plain[:2], torch.tensor([1.0, 2.0, 3.0]) + x


@case(x)
def buffers():
    return Buffers()


class Constants(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(torch.ones(2))
        self.register_buffer('count', torch.tensor(4))

    def forward(self, x):
        return self.w, self.count, torch.zeros(2, 2), x


@case(x)
def constants_out():
    return Constants()


@case(x)
def noncontiguous_in_place(x):
    y = x.t()
    y.add_(1)
    return y, x


@case(x.t())
def noncontiguous_in(x):
    return x.reshape(-1), x * 2, x.contiguous().view(6)


@case(torch.tensor(3), torch.arange(8.0))
def item_range(k, x):
    i = k.item()
    torch._check(i >= 0)
    torch._check(i < 8)
    return x[i] * i


@case(torch.tensor(3), x)
def constrained(k, x):
    i = k.item()
    torch._check_is_size(i)
    torch._check(i <= 6)
    return x + i


@case(x.to(torch.float8_e4m3fn), x)
def float8(q, x):
    return q.to(torch.float32) * 2, x.to(torch.float8_e5m2)


@case(torch.complex(x, x + 1))
def complex_in(z):
    return z.real + z.imag


@case(x)
def complex_out(x):
    return torch.complex(x, x * 2)


@case(torch.randn(5, 3), torch.zeros(3))
def scan_sum(xs, start):
    return scan(lambda c, v: (c + v, (c * v).clone()), start, xs)


@case(torch.randn(5, 3), {'a': torch.zeros(3), 'b': torch.ones(3)})
def scan_nested(xs, start):
    def step(c, v):
        a, b = c['a'] + v, c['b'] * 0.5
        return {'a': a, 'b': b}, (a * b, b + v)
    return scan(step, start, xs, reverse=True)


@case(torch.randn(7, 3))
def associative(xs):
    return associative_scan(lambda a, b: a + b, xs, 0, combine_mode='generic')


@case(torch.randn(4, 3), torch.randn(3))
def mapped(xs, y):
    return torch_map(lambda v, w: (v * w).sin(), xs, y)


@case(x)
def nested_cond(x):
    def yes(x):
        return torch.cond(x.max() > 1, lambda x: x + 1, lambda x: x - 1, (x,))
    return torch.cond(x.sum() > 0, yes, lambda x: x * 2, (x,))


@case(x)
def quantized_weight(x):
    return torch.fake_quantize_per_tensor_affine(x, 0.1, 0, -128, 127)


@case(x, torch.tensor([0.1, 0.2, 0.3]), torch.tensor([0, 3, 1], dtype=torch.int32))
def quantized_channels(x, scale, zero):
    q = torch.fake_quantize_per_channel_affine(x, scale, zero, 1, -128, 127)
    return q, torch.fake_quantize_per_tensor_affine(x, scale[:1], zero[:1], 0, 15)


@case(torch.randn(4, 3))
def quantized_steps(x):
    ops = torch.ops.quantized_decomposed
    q = ops.quantize_per_tensor(x, 0.05, 3, -128, 127, torch.int8)
    c = ops.quantize_per_channel(x, torch.tensor([0.1, 0.2, 0.3]), torch.tensor([1, 0, 2]), 1, 0, 255, torch.uint8)
    back = ops.dequantize_per_tensor(q, 0.05, 3, -128, 127, torch.int8)
    return q, c, back, ops.dequantize_per_channel(c, torch.tensor([0.1, 0.2, 0.3]), torch.tensor([1, 0, 2]), 1, 0, 255, torch.uint8)


@case(torch.arange(24.0).reshape(4, 6), torch.tensor(2), torch.tensor(-1))
def moving_slices(x, i, j):
    i, j = i.item(), j.item()
    torch._check(i >= 0)
    torch._check(i <= 2)
    torch._check(j >= -4)
    torch._check(j < 4)
    y = x.clone()
    y.narrow(0, i, 2).mul_(10)
    return x.narrow(1, i, 3), x[:, i:i + 2], x.select(0, j), y


class Rotations(torch.nn.Module):
    "A complex buffer and a complex parameter, of which one is not contiguous."

    def __init__(self):
        super().__init__()
        self.register_buffer('turns', torch.polar(torch.ones(3, 2), torch.arange(6.0).reshape(3, 2)).t())
        self.scale = torch.nn.Parameter(torch.complex(torch.ones(3), torch.arange(3.0)))

    def forward(self, z):
        y = z * self.turns * self.scale
        return y, torch.view_as_real(y), y.abs()


@case(torch.complex(x, x + 1))
def complex_state():
    return Rotations()


@case(torch.randn(2, 12, 20), torch.randn(3 * 4, 6))
def folds(x, y):
    fold = torch.nn.functional.fold
    return fold(x, (8, 8), (2, 3), padding=1, stride=2), fold(y, (4, 6), 2, stride=2), fold(x[:, :8], (9, 11), 2, stride=2, dilation=2)


class Cells(torch.nn.Module):
    "Single steps of recurrent layers, with and without biases, of a batch and of one row."

    def __init__(self):
        super().__init__()
        self.lstm, self.gru = torch.nn.LSTMCell(3, 4), torch.nn.GRUCell(3, 4, bias=False)
        self.tanh, self.relu = torch.nn.RNNCell(3, 4), torch.nn.RNNCell(3, 4, nonlinearity='relu')

    def forward(self, x, h):
        return *self.lstm(x, (h, h * 2)), self.gru(x, h), self.tanh(x, h), self.relu(x, h), self.lstm(x[0])[0]


@case(x, torch.randn(2, 4))
def recurrent_cells():
    return Cells()


@case(torch.tensor([True, False]), torch.tensor([1, 255], dtype=torch.uint8), torch.tensor([1, -2], dtype=torch.int16))
def small_types(b, u, s):
    return b.any(), ~b, u + 1, s * 2, u.sum(), b.sum(), b & True


def tensor(leaf, arg):
    "A value that the program takes or gives at run time as the tensor that weft has for it; None for a constant."
    if isinstance(leaf, torch.Tensor):
        return torch.view_as_real(leaf.resolve_conj()) if leaf.is_complex() else leaf
    return torch.tensor(leaf) if arg else None


def tensors(program, args, outs):
    leaves = torch.utils._pytree.tree_leaves
    ins, outs = leaves(args), leaves(outs)
    given = [hasattr(s.arg, 'name') and type(s.arg).__name__ == 'SymIntArgument' for s in program.graph_signature.input_specs if s.kind.name == 'USER_INPUT']
    made = [isinstance(a, torch.fx.Node) for a in program.graph.output_node().args[0]][-len(outs):] if outs else []
    named = {'in': [tensor(*p) for p in zip(ins, given)], 'out': [tensor(*p) for p in zip(outs, made)]}
    return {f'{kind}.{i}': t for kind, list in named.items() for i, t in enumerate(t for t in list if t is not None)}


def write(name, root):
    make, args, dynamic, strict = CASES[name]
    torch.manual_seed(0)
    module = make() if make.__code__.co_argcount == 0 and args else Function(make)
    program = torch.export.export(module, args, dynamic_shapes=(dynamic,) if dynamic and isinstance(module, Function) else dynamic, strict=strict)
    fixture.strip_paths(program)
    torch.export.save(program, root / f'{name}.pt2')
    args = copy.deepcopy(args)
    before = copy.deepcopy(args)
    with torch.no_grad():
        found = tensors(program, before, module(*args))
    save_file({k: t.detach().contiguous().clone() for k, t in found.items()}, root / f'{name}.safetensors')
    return f'{name}: {len(program.graph.nodes)} nodes'


def main(argv):
    root = Path(argv[0]) if argv else Path(__file__).parent.parent / 'odd'
    root.mkdir(parents=True, exist_ok=True)
    failed = 0
    for name in argv[1:] or CASES:
        try:
            print(write(name, root), flush=True)
        except Exception as e:
            failed += 1
            print(f'{name}: FAILED: {type(e).__name__}: {str(e)[:300]}', flush=True)
    return failed > 0


if __name__ == '__main__':
    warnings.filterwarnings('ignore')
    sys.exit(main(sys.argv[1:]))
