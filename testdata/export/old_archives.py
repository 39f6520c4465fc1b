"""Writes the fixtures of testdata/models that releases before PyTorch 2.8 make:  python3 old_archives.py [FOLDER [NAME...]]

Runs under that release (2.4 to 2.7) and needs nothing but it and safetensors. The folders are named after it: old_torch25_mlp.
These releases write the graph and torch-saved weights side by side into one zip file, where later ones write one file for
each weight.
"""
import copy
import re
import sys
import warnings
import zipfile
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import nn

LIBRARY = re.compile(r'(?:/[\w.+-]+)+/(?:site-packages|dist-packages)/')
ABSOLUTE = re.compile(rb'(?<![\w.])/(?:root|home|usr|tmp|work|opt|Users|private|mnt)/[\w.+-]+')


class MLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.norm, self.down = nn.Linear(16, 32), nn.LayerNorm(32), nn.Linear(32, 8)

    def forward(self, x):
        return torch.softmax(self.down(self.norm(nn.functional.gelu(self.up(x)))), -1)


class ConvNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(3, 8, 3, padding=1)
        self.norm = nn.BatchNorm2d(8)
        self.second = nn.Conv2d(8, 8, 3, stride=2, padding=1, groups=4)
        self.head = nn.Linear(8, 5)
        self.second.weight.data = self.second.weight.data.to(memory_format=torch.channels_last)  # a strided view in the file

    def forward(self, x):
        x = nn.functional.max_pool2d(torch.relu(self.norm(self.first(x))), 2)
        return self.head(nn.functional.hardswish(self.second(x)).mean((2, 3)))


class Attention(nn.Module):
    "One decoder layer over token numbers: embedding tied to the head, a mask that is a lifted constant, two symbolic dims."

    def __init__(self, width=32, heads=4):
        super().__init__()
        self.heads = heads
        self.embed = nn.Embedding(40, width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.head = nn.Linear(width, 40, bias=False)
        self.head.weight = self.embed.weight
        self.scales = torch.tensor([0.5, 1.0, 1.5, 2.0])

    def forward(self, tokens):
        b, n = tokens.shape
        x = self.embed(tokens)
        q, k, v = (t.reshape(b, n, self.heads, -1).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
        y = nn.functional.scaled_dot_product_attention(q, k, v * self.scales[:, None, None], is_causal=True)
        return self.head(x + self.out(y.transpose(1, 2).reshape(b, n, -1)))


class Counter(nn.Module):
    "Buffers that a run changes, one of them not saved with the weights but as a constant."

    def __init__(self):
        super().__init__()
        self.register_buffer('total', torch.zeros(4))
        self.register_buffer('steps', torch.zeros((), dtype=torch.int64))
        self.register_buffer('weights', torch.tensor([1.0, 2.0, 3.0, 4.0]), persistent=False)
        self.gain = nn.Parameter(torch.ones(4, dtype=torch.bfloat16))

    def forward(self, x):
        self.steps.add_(1)
        self.total.mul_(0.5).add_(x.sum(0) * self.weights)
        return self.total * self.gain + self.steps


def cases():
    Dim = torch.export.Dim
    batch, length = Dim('batch', min=2, max=64), Dim('length', min=2, max=32)
    tokens = lambda b, n: torch.randint(0, 40, (b, n))
    yield 'mlp', MLP(), (torch.randn(4, 16),), ({0: Dim('batch', max=1024)},), {'batch7': (torch.randn(7, 16),)}
    yield 'conv', ConvNet(), (torch.randn(2, 3, 12, 12),), None, {}
    yield 'attention', Attention(), (tokens(2, 9),), ({0: batch, 1: length},), {'3x32': (tokens(3, 32),)}
    yield 'counter', Counter(), (torch.randn(3, 4),), None, {}


def run(module, args):
    "Tensors of one run on a copy: inputs, outputs, and the buffers that it changed."
    module = copy.deepcopy(module)
    state = {k: t.clone() for k, t in module.named_buffers()}
    with torch.no_grad():
        out = module(*args)
    tensors = {f'in.{i}': t for i, t in enumerate(args)} | {'out.0': out}
    for k, t in module.named_buffers():
        if not torch.equal(t, state[k]):
            tensors |= {f'state.{k}': state[k], f'after.state.{k}': t}
    return {k: t.detach().contiguous().clone() for k, t in tensors.items()}


def strip_paths(program):
    "Stack traces name PACKAGE/FILE.py for library files and FILE.py for ours, so that no folder of a machine is in a fixture."
    for module in program.graph_module.modules():
        for node in getattr(module, 'graph', None).nodes if hasattr(module, 'graph') else ():
            if node.meta.get('stack_trace'):
                trace = LIBRARY.sub('', node.meta['stack_trace'])
                node.meta['stack_trace'] = re.sub(r'File "(?:/[^"/]+)+/([^"/]+)"', r'File "\1"', trace)


def write(folder, module, args, dynamic, more):
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    program = torch.export.export(copy.deepcopy(module), args, dynamic_shapes=dynamic, strict=False)
    strip_paths(program)
    torch.export.save(program, str(folder / 'model.pt2'))
    save_file(run(module, args), folder / 'io.safetensors')
    for word, other in more.items():
        save_file(run(module, other), folder / f'io_{word}.safetensors')
    with zipfile.ZipFile(folder / 'model.pt2') as z:
        for name in z.namelist():
            found = ABSOLUTE.search(z.read(name))
            if found:
                raise ValueError(f'{folder}: {name} holds the path {found.group().decode()}')


def main(argv):
    release = '.'.join(torch.__version__.split('.')[:2])
    root, only = Path(argv[0]) if argv else Path(__file__).parent.parent / 'models', argv[1:]
    failed = False
    torch.manual_seed(0)
    for name, module, args, dynamic, more in cases():
        if only and name not in only:
            continue
        folder = root / f'old_torch{release.replace(".", "")}_{name}'
        try:
            write(folder, module.eval(), args, dynamic, more)
            print(folder.name, (folder / 'model.pt2').stat().st_size)
        except Exception as e:
            failed = True
            print(f'{folder.name}: FAILED: {type(e).__name__}: {e}')
    return failed


if __name__ == '__main__':
    warnings.filterwarnings('ignore')
    sys.exit(main(sys.argv[1:]))
