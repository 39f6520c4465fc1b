"""Float64 references for exported programs with narrow types:  python3 exact.py FOLDER NAME...

Adds exact.N to FOLDER/NAME/io*.safetensors: the outputs of the same program on the same numbers, with every float in it widened
to float64, so that what remains of out.N - exact.N is the error of the narrow types.
"""
import copy
import sys
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

NARROW = {torch.float32, torch.float16, torch.bfloat16}


def wide(x):
    "A tensor, type or nest of them with every narrow float replaced by float64."
    if isinstance(x, torch.Tensor):
        return x.double() if x.dtype in NARROW else x
    if isinstance(x, (list, tuple)):
        return type(x)(wide(y) for y in x)
    if isinstance(x, dict):
        return {k: wide(v) for k, v in x.items()}
    return x


def wide_type(x):
    return torch.float64 if isinstance(x, torch.dtype) and x in NARROW else x


def is_narrow(program):
    "Whether anything in the program has fewer bits than float32."
    for part in program.graph_module.modules():
        for node in part.graph.nodes if isinstance(part, torch.fx.GraphModule) else ():
            value = node.meta.get('val')
            if isinstance(value, torch.Tensor) and value.dtype in (torch.bfloat16, torch.float16):
                return True
    return False


def widen_graph(graph):
    "Casts go to float64, autocast regions do nothing, what was recorded of types is not checked."
    for node in list(graph.nodes):
        if 'assert_tensor_metadata' in str(node.target):
            graph.erase_node(node)
            continue
        args = list(node.args)
        if 'wrap_with_autocast' in str(node.target):
            args[2] = False  # enabled
        node.args = tuple(wide_type(a) for a in args)
        node.kwargs = {k: wide_type(v) for k, v in node.kwargs.items()}


def outputs(program, inputs):
    "The tensors that the widened program gives for the flattened inputs."
    module = copy.deepcopy(program).module(check_guards=False)
    for part in module.modules():
        if isinstance(part, torch.fx.GraphModule):
            widen_graph(part.graph)
            part.recompile()
    for part in module.modules():
        for name, t in list(part.named_parameters(recurse=False)):
            setattr(part, name, torch.nn.Parameter(wide(t.data), requires_grad=False))
        for name, t in list(part.named_buffers(recurse=False)):
            part.register_buffer(name, wide(t))
        for name, t in list(vars(part).items()):
            if isinstance(t, torch.Tensor):
                setattr(part, name, wide(t))
    with torch.no_grad():
        out = module(*wide(inputs))
    return out if isinstance(out, (list, tuple)) else (out,)


def exact(program, tensors):
    "Tensors exact.N for a fixture's tensors; none where the program has no narrow types."
    if not is_narrow(program):
        return {}
    inputs = [tensors[f'in.{i}'] for i in range(sum(k.startswith('in.') for k in tensors))]
    outs = [t for t in outputs(program, inputs) if isinstance(t, torch.Tensor)]
    return {f'exact.{i}': t.contiguous().clone() for i, t in enumerate(outs) if t.dtype == torch.float64}


def main(argv):
    for name in argv[1:]:
        folder = Path(argv[0]) / name
        program = torch.export.load(folder / 'model.pt2')
        for path in sorted(folder.glob('io*.safetensors')):
            tensors = {k: t for k, t in load_file(path).items() if not k.startswith('exact.')}
            added = exact(program, tensors)
            save_file(tensors | added, path)
            print(f'{name}/{path.name}: {len(added)} references')


if __name__ == '__main__':
    main(sys.argv[1:])
