"""PyTorch's side of multi.sh: the same collectives by torch.distributed, and Llama 3.2 1B by tensor parallelism.

torchrun --standalone --nproc-per-node N torch_ranks.py comm | tp LENGTH [MODE]     JSON lines from rank 0
"""
import json
import os
import sys
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn

from collectives import SIZES, STEPS, WARMUP, count

rank, world = int(os.environ['RANK']), int(os.environ['WORLD_SIZE'])
device = torch.device('cuda', int(os.environ['LOCAL_RANK']))
torch.cuda.set_device(device)
dist.init_process_group('nccl', device_id=device)
torch.manual_seed(0)


def say(**row):
    if rank == 0:
        print(json.dumps(row), flush=True)


def median(f, steps=30, warmup=5):
    "Milliseconds of f between device events, enqueued without waiting in between."
    for _ in range(warmup):
        f()
    torch.cuda.synchronize()
    dist.barrier()
    marks = [torch.cuda.Event(enable_timing=True) for _ in range(steps + 1)]
    marks[0].record()
    for m in marks[1:]:
        f()
        m.record()
    torch.cuda.synchronize()
    return sorted(a.elapsed_time(b) for a, b in zip(marks, marks[1:]))[steps // 2]


def comm():
    for size in SIZES:
        n = count(size)
        wholes = [torch.zeros(size // 2, device=device, dtype=torch.bfloat16) for _ in range(n)]
        shares = [torch.zeros(size // 2 // world, device=device, dtype=torch.bfloat16) for _ in range(n)]
        for kind, call in (('all_reduce', lambda w, s: dist.all_reduce(w)), ('all_gather', dist.all_gather_into_tensor),
                           ('reduce_scatter', lambda w, s: dist.reduce_scatter_tensor(s, w))):
            def step():
                for w, s in zip(wholes, shares):
                    call(w, s)
            eager = median(step, STEPS, WARMUP) / n
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                step()
            say(collective=kind, bytes=size, eager_us=round(eager * 1e3, 2), graph_us=round(median(graph.replay, STEPS, WARMUP) / n * 1e3, 2))
            del graph


class Block(nn.Module):
    def __init__(self, width=2048, heads=32, keys=8, inner=8192):
        super().__init__()
        self.head = width // heads
        self.norm1, self.norm2 = nn.RMSNorm(width), nn.RMSNorm(width)
        self.q, self.k, self.v = (nn.Linear(width, n * self.head, bias=False) for n in (heads, keys, keys))
        self.o = nn.Linear(width, width, bias=False)
        self.gate, self.up, self.down = nn.Linear(width, inner, bias=False), nn.Linear(width, inner, bias=False), nn.Linear(inner, width, bias=False)

    def forward(self, x, cos, sin):
        def split(y):
            return y.unflatten(-1, (-1, self.head)).transpose(1, 2)

        def rotate(y):
            a, b = y.chunk(2, -1)
            return y * cos + torch.cat((-b, a), -1) * sin
        h = self.norm1(x)
        q, k, v = rotate(split(self.q(h))), rotate(split(self.k(h))), split(self.v(h))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        x = x + self.o(y.transpose(1, 2).flatten(2))
        h = self.norm2(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


class Llama(nn.Module):
    def __init__(self, layers=16, width=2048, vocabulary=128256, head=64):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.layers = nn.ModuleList(Block() for _ in range(layers))
        self.norm, self.lm_head, self.head = nn.RMSNorm(width), nn.Linear(width, vocabulary, bias=False), head

    def forward(self, ids):
        t = torch.arange(ids.shape[1], device=ids.device)[:, None] / 500000 ** (torch.arange(0, self.head, 2, device=ids.device) / self.head)
        cos, sin = (f(torch.cat((t, t), -1)).bfloat16() for f in (torch.cos, torch.sin))
        x = self.embed(ids)
        for layer in self.layers:
            x = layer(x, cos, sin)
        return self.lm_head(self.norm(x))


def tp(length, mode):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Shard
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
    mesh = init_device_mesh('cuda', (world,))
    with device:
        model = Llama().bfloat16().eval()
    for layer in model.layers:
        parallelize_module(layer, mesh, {n: ColwiseParallel() for n in ('q', 'k', 'v', 'gate', 'up')} | {n: RowwiseParallel() for n in ('o', 'down')})
    parallelize_module(model, mesh, {'lm_head': ColwiseParallel(output_layouts=Shard(-1), use_local_output=True)})
    ids = torch.randint(0, 128256, (1, length), device=device)
    f = model if mode == 'eager' else torch.compile(model, mode=None if mode == 'compile' else mode)
    with torch.no_grad():
        start = time.time()
        f(ids)
        torch.cuda.synchronize()
        first = time.time() - start
        torch.cuda.reset_peak_memory_stats()
        ms = median(lambda: f(ids), steps=20)
    say(model='llama3_1b tp', mode=mode, length=length, ms=round(ms, 3), first_call_s=round(first, 1), peak_mb=round(torch.cuda.max_memory_allocated() / 1e6), gpus=world)


if __name__ == '__main__':
    if sys.argv[1] == 'comm':
        comm()
    else:
        for mode in sys.argv[3:] or ['compile']:
            tp(int(sys.argv[2]), mode)
    dist.destroy_process_group()
