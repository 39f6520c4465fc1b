"""How one fixture is written: the model by torch.export and as ONNX, and tensors that say what it computes.

A fixture folder holds
  model.pt2            the exported program, as torch.export.save writes it
  model.onnx           the same model, where the ONNX exporter can write it
  io.safetensors       in.N and out.N: flattened inputs, and outputs of the plain (eager) module on the CPU
  io_WORD.safetensors  the same for other inputs
Programs with types narrower than float32 also have exact.N: the outputs in float64.
An input that the model changes in place is also stored as it is after the run, as after.in.N; a buffer that it changes as
state.NAME before the run and after.state.NAME after it.
"""
import copy
import re
import warnings
from dataclasses import dataclass, field
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx.reference
import onnxruntime
import onnxruntime.capi.onnxruntime_pybind11_state
import torch
import torch.export.experimental
from safetensors.torch import save_file

import exact

LIBRARY = re.compile(r'(?:/[\w.+-]+)+/(?:site-packages|dist-packages)/')
ABSOLUTE = re.compile(rb'(?<![\w.])/(?:root|home|usr|tmp|work|opt|Users|private|mnt)/[\w.+-]+')


@dataclass
class Case:
    "A model, the inputs that it is exported with, and further inputs that its outputs are stored for."
    name: str
    module: torch.nn.Module
    args: tuple
    dynamic: tuple | None = None
    more: dict[str, tuple] = field(default_factory=dict)
    before: dict[str, dict] = field(default_factory=dict)  # by word of more: buffers as they are before the run
    training: bool = False  # left in training mode, so that batch norms update their statistics
    onnx: bool = True
    joint: bool = False  # the program computes the loss, which the module gives, and its gradients
    traced: dict | None = None  # names of symbolic dims: only model.onnx, by the tracing exporter
    float64: bool = True  # False where the model's text fixes narrower types, so that a float64 run means nothing


def flat(x):
    "The tensors of a nest of tuples, lists and dicts, in order."
    if isinstance(x, torch.Tensor):
        return [x]
    if isinstance(x, dict):
        x = list(x.values())
    return [t for y in x for t in flat(y)] if isinstance(x, (list, tuple)) else []


def relative(trace):
    "A stack trace with PACKAGE/FILE.py for library files and FILE.py for ours, so that no folder of one machine is in a fixture."
    trace = LIBRARY.sub('', trace)
    return re.sub(r'File "(?:/[^"/]+)+/([^"/]+)"', r'File "\1"', trace)


def strip_paths(program):
    for module in program.graph_module.modules():
        for node in getattr(module, 'graph', None).nodes if hasattr(module, 'graph') else ():
            if node.meta.get('stack_trace'):
                node.meta['stack_trace'] = relative(node.meta['stack_trace'])


def run(module, args, buffers=None):
    "Tensors of one run on a copy: inputs, outputs, and what the run changed."
    module, args = copy.deepcopy(module), copy.deepcopy(args)
    with torch.no_grad():
        for k, t in (buffers or {}).items():
            module.get_buffer(k).copy_(t)
    ins = flat(list(args))
    before = [t.clone() for t in ins]
    state = {k: t.clone() for k, t in module.named_buffers()}
    with torch.no_grad():
        outs = flat([module(*args)])
    tensors = {f'in.{i}': t for i, t in enumerate(before)}
    tensors |= {f'out.{i}': t.clone() for i, t in enumerate(outs)}
    tensors |= {f'after.in.{i}': t for i, t in enumerate(ins) if not torch.equal(t, before[i])}
    for k, t in module.named_buffers():
        if not torch.equal(t, state[k]):
            tensors |= {f'state.{k}': state[k], f'after.state.{k}': t}
    return {k: t.detach().contiguous().clone() for k, t in tensors.items()}


def largest_error(got, want):
    "The largest difference of two tensors, over atol + rtol * |want| for the default tolerances of want's type."
    if got.shape != want.shape:
        raise ValueError(f'shape {tuple(got.shape)}, expected {tuple(want.shape)}')
    rtol, atol = {torch.float32: (1e-4, 1e-5), torch.bfloat16: (2e-2, 1e-2), torch.float16: (4e-3, 2e-3),
                  torch.float64: (1e-9, 1e-12)}.get(want.dtype, (0, 0))
    got, want = got.double(), want.double()
    diff = (got - want).abs()
    diff[(got == want) | (got.isnan() & want.isnan())] = 0
    if diff.numel() == 0:
        return 0.0
    if atol == 0:
        return float('inf') if diff.max() > 0 else 0.0
    return (diff / (atol + rtol * want.abs())).max().item()


def widen(x):
    if isinstance(x, torch.Tensor):
        return x.double() if x.dtype == torch.float32 else x
    return type(x)(widen(y) for y in x) if isinstance(x, (list, tuple)) else x


def check_conditioning(case, tensors):
    "A float64 run must agree well within the tolerances; else the fixture would test luck."
    if not case.float64:
        return
    wide = run(copy.deepcopy(case.module).double(), widen(case.args))
    for k in (k for k in tensors if k.startswith('out.')):
        want = tensors[k]
        err = largest_error(wide[k].to(want.dtype), want)
        if err > 0.5:
            raise ValueError(f'{case.name} {k}: float64 differs by {err:.2f} of the tolerance')


def to_numpy(t):
    return t.view(torch.int16).numpy().view(ml_dtypes.bfloat16) if t.dtype == torch.bfloat16 else t.numpy()


def from_numpy(a):
    a = np.ascontiguousarray(a).reshape(np.shape(a))
    return torch.from_numpy(a.view(np.int16)).view(torch.bfloat16) if a.dtype == ml_dtypes.bfloat16 else torch.from_numpy(a)


def run_onnx(path, ins):
    "Outputs by onnxruntime, or by onnx's own slow evaluator where onnxruntime lacks an operator for a type."
    try:
        session = onnxruntime.InferenceSession(str(path), providers=['CPUExecutionProvider'])
        names = [i.name for i in session.get_inputs()]
    except onnxruntime.capi.onnxruntime_pybind11_state.NotImplemented:
        session = onnx.reference.ReferenceEvaluator(str(path))
        names = session.input_names
    if len(names) != len(ins):
        raise ValueError(f'{len(names)} inputs, expected {len(ins)}')
    return session.run(None, dict(zip(names, map(to_numpy, ins))))


def check_onnx(path, tensors):
    "Runs the ONNX file: None when it agrees, else what is wrong."
    ins = [tensors[f'in.{i}'] for i in range(sum(k.startswith('in.') for k in tensors))]
    try:
        outs = run_onnx(path, ins)
    except Exception as e:
        return f'{type(e).__name__}: {str(e)[:200]}'
    for i, got in enumerate(outs):
        err = largest_error(from_numpy(got), tensors[f'out.{i}'])
        if err > 1:
            return f'out.{i} differs by {err:.2f} of the tolerance'
    return None


def write(case, root):
    "Writes one fixture folder and returns a line about it."
    torch.manual_seed(0)
    folder = Path(root) / case.name
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    case.module.train(case.training)
    tensors = run(case.module, case.args)
    check_conditioning(case, tensors)
    for word, args in case.more.items():
        save_file(run(case.module, args, case.before.get(word)), folder / f'io_{word}.safetensors')
    if case.traced:
        save_file(tensors, folder / 'io.safetensors')
        line = f'{case.name}: ' + write_traced(case, folder, tensors)
    else:
        line = write_exported(case, folder, tensors)
    for path in folder.iterdir():
        found = ABSOLUTE.search(path.read_bytes())
        if found:
            raise ValueError(f'{path}: holds the path {found.group().decode()}')
    return line


def write_exported(case, folder, tensors):
    program = torch.export.export(copy.deepcopy(case.module), copy.deepcopy(case.args), dynamic_shapes=case.dynamic, strict=False)
    if case.joint:
        program = torch.export.experimental._export_forward_backward(program)
        tensors = gradients(case, program, tensors)
    strip_paths(program)
    torch.export.save(program, folder / 'model.pt2')
    save_file(tensors | exact.exact(program, tensors), folder / 'io.safetensors')
    return f'{case.name}: {len(program.graph.nodes)} nodes, ' + write_onnx(case, program, folder, tensors)


def gradients(case, program, tensors):
    "Inputs, loss and gradients, in the order of the program's outputs."
    module = copy.deepcopy(case.module)
    loss = module(*copy.deepcopy(case.args))
    loss.backward()
    named = dict(module.named_parameters())
    tensors = {k: v for k, v in tensors.items() if not k.startswith('out.')}
    signature = program.graph_signature
    of = signature.backward_signature.gradients_to_parameters
    for i, name in enumerate(s.arg.name for s in signature.output_specs):
        t = named[of[name]].grad if name in of else loss.detach()
        tensors[f'out.{i}'] = t.contiguous().clone()
    return tensors


def write_traced(case, folder, tensors):
    "The file of the tracing exporter, whose dims are symbolic in the inputs alone."
    path = folder / 'model.onnx'
    names = [f'in{i}' for i in range(len(flat(list(case.args))))]
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        torch.onnx.export(copy.deepcopy(case.module), case.args, path, dynamo=False, opset_version=17, input_names=names,
                          dynamic_axes={n: case.traced for n in names})
    wrong = check_onnx(path, tensors)
    if wrong:
        raise ValueError(f'ONNX: when run, {wrong}')
    return 'traced; ONNX agrees'


def write_onnx(case, program, folder, tensors):
    if not case.onnx:
        return 'no ONNX asked for'
    path = folder / 'model.onnx'
    try:
        with warnings.catch_warnings():
            warnings.simplefilter('ignore')
            torch.onnx.export(program, dynamo=True, verbose=False).save(path)
    except Exception as e:
        return f'no ONNX: the exporter says {type(e).__name__}: ' + str(e).strip().splitlines()[-1][:160]
    wrong = check_onnx(path, tensors)
    if wrong:
        path.unlink()
        return f'no ONNX: when run, {wrong}'
    return 'ONNX agrees'
