"""Writes the fixtures of testdata/ranks:  python3 collectives.py [FOLDER]

They are models with collectives, on a mesh (dp=2, tp=2) of four processes with gloo. A folder holds
  model.pt2        what rank 0 exports
  io.safetensors   rankR.in.N and rankR.out.N: inputs and outputs of each rank, computed by all ranks together
"""
import os
import socket
import sys
import warnings
from pathlib import Path

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as F
import torch.multiprocessing as mp
from safetensors.torch import save_file
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor
from torch.distributed.tensor.parallel import ColwiseParallel, PrepareModuleInput, RowwiseParallel, SequenceParallel, parallelize_module
from torch.distributed.tensor import Replicate, Shard
from torch.fx.experimental.proxy_tensor import make_fx

import fixture

RANKS = 4


class Plain(torch.nn.Module):
    "Each functional collective, along both axes of the mesh and over all ranks."

    def __init__(self, mesh, exporting):
        super().__init__()
        self.mesh, self.exporting = mesh, exporting
        self.weight = torch.nn.Parameter(torch.randn(8, 8))

    def mean(self, x, axis):
        if self.exporting:
            return F.all_reduce(x, 'avg', (self.mesh, axis))
        return F.all_reduce(x, 'sum', (self.mesh, axis)) / 2  # gloo has no avg

    def forward(self, x, whole):
        y = self.mean(x @ self.weight, 1)
        gathered = F.all_gather_tensor(y, 1, (self.mesh, 0))
        scattered = F.reduce_scatter_tensor(gathered.exp(), 'sum', 0, (self.mesh, 1))
        swapped = F.all_to_all_single(scattered, None, None, (self.mesh, 0))
        first = F.broadcast(-x, 1, (self.mesh, 1))
        largest, second = F.all_reduce_coalesced([x, y.sin()], 'max', dist.group.WORLD)
        everywhere = F.all_gather_tensor(whole, 0, dist.group.WORLD)
        return swapped, first, largest, second, everywhere, F.all_reduce(whole, 'product', (self.mesh, 0))


class Rare(torch.nn.Module):
    "Collectives of lists of tensors, in place, into given tensors, and DTensor's exchange of dims."

    def __init__(self, mesh):
        super().__init__()
        self.dp, self.tp = (mesh.get_group(i).group_name for i in range(2))

    def forward(self, x, y):
        ops, wait = torch.ops._c10d_functional, torch.ops._c10d_functional.wait_tensor
        gathered = [wait(t) for t in ops.all_gather_into_tensor_coalesced([x, y], 2, self.dp)]
        scattered = [wait(t) for t in ops.reduce_scatter_tensor_coalesced([x, y], 'min', 2, self.tp)]
        into = wait(ops.all_gather_into_tensor_out(x, 2, self.tp, out=torch.empty(8, 6)))
        changed = x * 2
        wait(ops.all_reduce_(changed, 'sum', self.dp))
        received = y + 1
        wait(ops.broadcast_(received, 1, self.dp))
        both = [x + 1, y + 2]
        for t in ops.all_reduce_coalesced_(both, 'sum', self.tp):
            wait(t)
        bits = wait(ops.all_reduce((x * 100).int(), 'bxor', self.tp))
        moved = wait(torch.ops._dtensor.shard_dim_alltoall(x, 1, 0, self.tp))
        return *gathered, *scattered, into, changed, received, *both, bits, moved


class MLP(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = torch.nn.LayerNorm(8)
        self.up = torch.nn.Linear(8, 16)
        self.down = torch.nn.Linear(16, 8)

    def forward(self, x):
        return x + self.down(torch.nn.functional.gelu(self.up(self.norm(x))))


class Local(torch.nn.Module):
    "A parallelized module as one rank sees it: a function of its parts of the parameters."

    def __init__(self, module):
        super().__init__()
        self.hidden = [module]  # no submodule: its parameters are inputs here
        self.parts = {n: (p.device_mesh, p.placements) for n, p in module.named_parameters() if isinstance(p, DTensor)}

    def parameters_of_rank(self):
        return {n: (p.to_local() if isinstance(p, DTensor) else p).detach().clone() for n, p in self.hidden[0].named_parameters()}

    def forward(self, x, parameters):
        given = {n: DTensor.from_local(t, *self.parts[n], run_check=False) if n in self.parts else t for n, t in parameters.items()}
        y = torch.func.functional_call(self.hidden[0], given, (x,))
        return y.to_local() if isinstance(y, DTensor) else y


def traced(module, args):
    "DTensors cannot be exported: what they do on this rank is traced first."
    with torch.no_grad():
        return make_fx(module)(*args)


def plain(mesh):
    args = (torch.randn(4, 8), torch.randint(1, 9, (3, 2)))
    return Plain(mesh, True), Plain(mesh, False), args


def rare(mesh):
    return Rare(mesh), Rare(mesh), (torch.randn(4, 6), torch.randn(2, 3))


def parallel(mesh, plan):
    module = parallelize_module(MLP(), mesh['tp'], plan)
    local = Local(module)
    args = (torch.randn(4, 8), local.parameters_of_rank())
    return traced(local, args), local, args


def tensor_parallel(mesh):
    return parallel(mesh, {'up': ColwiseParallel(), 'down': RowwiseParallel()})


def sequence_parallel(mesh):
    "The rank's rows of the tokens go in and out."
    return parallel(mesh, {
        '': PrepareModuleInput(input_layouts=(Shard(0),), desired_input_layouts=(Shard(0),)),
        'norm': SequenceParallel(sequence_dim=0),
        'up': ColwiseParallel(input_layouts=Shard(0)),
        'down': RowwiseParallel(output_layouts=Shard(0), use_local_output=False),
    })


CASES = {'collectives_2d': plain, 'collectives_rare': rare, 'tensor_parallel_mlp': tensor_parallel, 'sequence_parallel_mlp': sequence_parallel}


def work(rank, port, root):
    warnings.filterwarnings('ignore')
    os.environ.update(MASTER_ADDR='127.0.0.1', MASTER_PORT=str(port), RANK=str(rank), WORLD_SIZE=str(RANKS))
    dist.init_process_group('gloo')
    mesh = init_device_mesh('cpu', (2, 2), mesh_dim_names=('dp', 'tp'))
    for name, make in CASES.items():
        torch.manual_seed(0)
        exported, eager, args = make(mesh)
        if name == 'collectives_2d':
            eager.load_state_dict(exported.state_dict())
        torch.manual_seed(1 + (rank if name != 'tensor_parallel_mlp' else rank // 2))
        args = (torch.randn_like(args[0]), *args[1:])
        with torch.no_grad():
            outs = fixture.flat([eager(*args)])
        tensors = {f'rank{rank}.in.{i}': t for i, t in enumerate(fixture.flat(list(args)))}
        tensors |= {f'rank{rank}.out.{i}': t for i, t in enumerate(outs)}
        every = [None] * RANKS
        dist.all_gather_object(every, {k: t.detach().contiguous().clone() for k, t in tensors.items()})
        program = torch.export.export(exported, args, strict=False)
        if rank == 0:
            folder = Path(root) / name
            folder.mkdir(parents=True, exist_ok=True)
            fixture.strip_paths(program)
            torch.export.save(program, folder / 'model.pt2')
            save_file({k: t for one in every for k, t in one.items()}, folder / 'io.safetensors')
            print(f'{name}: {len(program.graph.nodes)} nodes', flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == '__main__':
    with socket.socket() as s:
        s.bind(('127.0.0.1', 0))
        free = s.getsockname()[1]
    mp.spawn(work, (free, sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent.parent / 'ranks'), nprocs=RANKS)
