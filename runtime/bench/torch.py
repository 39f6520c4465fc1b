"""Times a model in PyTorch on inputs that weft has run on, and says how far all results are from float64.

torch.py FOLDER MODEL [--device cuda] [--modes eager,default,...] [--steps N] [--warmup N] [--budget SECONDS]

FOLDER has inputs.safetensors (in.N), outputs.safetensors (out.N, of weft) and, for a graph without weights,
weights.safetensors. MODEL is a .pt2, a graph-only .json.zip, or FILE.py:FUNCTION. Each result is a line of JSON on stdout.
"""

import argparse
import importlib.util
import json
import os
import re
import signal
import sys
import time
import zipfile

START = time.monotonic()

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map, tree_unflatten

DTYPES = {
    "F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16, "I64": torch.int64,
    "I32": torch.int32, "I16": torch.int16, "I8": torch.int8, "U8": torch.uint8, "BOOL": torch.bool,
}
HALF = (torch.float16, torch.bfloat16)
# rtol and atol by type, weft's defaults of `run --expect`.
TOLERANCE = {torch.float64: (1e-9, 1e-9), torch.float32: (1e-4, 1e-5), torch.float16: (4e-3, 2e-3), torch.bfloat16: (2e-2, 1e-2)}


def say(**row):
    print(json.dumps(row), flush=True)


def brief(error):
    return " ".join(f"{type(error).__name__}: {error}".split())[:300]


def read_safetensors(path, device):
    """Reads a safetensors file: 8 bytes of length, a JSON header, the data."""
    with open(path, "rb") as f:
        header = json.loads(f.read(int.from_bytes(f.read(8), "little")))
        base = f.tell()
        tensors = {}
        for name, info in header.items():
            if name == "__metadata__":
                continue
            begin, end = info["data_offsets"]
            dtype, shape = DTYPES[info["dtype"]], info["shape"]
            if begin == end:
                tensors[name] = torch.zeros(shape, dtype=dtype, device=device)
                continue
            f.seek(base + begin)
            data = bytearray(f.read(end - begin))
            tensors[name] = torch.frombuffer(data, dtype=dtype).reshape(shape).to(device)
    return tensors


def numbered(tensors, prefix):
    out = []
    while f"{prefix}{len(out)}" in tensors:
        out.append(tensors[f"{prefix}{len(out)}"])
    return out


def moved(program, device):
    from torch.export.passes import move_to_device_pass

    return move_to_device_pass(program, device)


def load_graph(path, folder, device):
    """Loads a graph without weights: those that weft used where it wrote them, else random ones."""
    from torch._export.serde.serialize import SerializedArtifact, deserialize

    with zipfile.ZipFile(path) as z:
        text = z.read("model.json").decode()
    # The graph was exported on the meta device, where nothing runs.
    where = '{"type": "%s", "index": %s}' % (device, "0" if device == "cuda" else "null")
    text = re.sub(r'\{"type": "(meta|cpu|cuda)", "index": (null|\d+)\}', where, text)
    graph = json.loads(text)["graph_module"]
    values = graph["graph"]["tensor_values"]
    names = {number: name for name, number in schema_types().items()}
    try:
        given = read_safetensors(f"{folder}/weights.safetensors", device)
    except FileNotFoundError:
        given = None
    state, constants = {}, {}
    random = torch.Generator(device=device).manual_seed(1)
    for spec in graph["signature"]["input_specs"]:
        (kind, value), = spec.items()
        if kind == "user_input":
            continue
        if kind not in ("parameter", "buffer"):
            raise ValueError(f"the graph has an input of kind {kind}, whose value is in no file")
        name = value[kind + "_name"]
        meta = values[value["arg"]["name"]]
        dtype, shape = getattr(torch, names[meta["dtype"]]), [s["as_int"] for s in meta["sizes"]]
        if given is not None and name in given:
            tensor = given[name]
        elif dtype.is_floating_point:
            tensor = (torch.randn(shape, generator=random, device=device) * 0.02).to(dtype)
            if name.endswith("running_var"):
                tensor = tensor.abs() + 1
        else:
            tensor = torch.zeros(shape, dtype=dtype, device=device)
        if kind == "buffer" and not value.get("persistent", True):
            constants[name] = tensor
        else:
            state[name] = torch.nn.Parameter(tensor, requires_grad=False) if kind == "parameter" else tensor
    # Tensors are given as they are, not as the bytes of torch.save.
    program = deserialize(SerializedArtifact(text.encode(), state, constants, b""))
    return program, given is not None


def schema_types():
    from torch._export.serde.schema import ScalarType

    table = {"BYTE": "uint8", "CHAR": "int8", "SHORT": "int16", "INT": "int32", "LONG": "int64", "HALF": "float16", "FLOAT": "float32",
             "DOUBLE": "float64", "BOOL": "bool", "BFLOAT16": "bfloat16"}
    return {table[t.name]: int(t) for t in ScalarType if t.name in table}


def module_of(program):
    try:
        return program.module(check_guards=False)
    except TypeError:  # before torch 2.9
        return program.module()


def load(model, folder, device, inputs):
    """Gives a function of no arguments, the module behind it if any, its arguments, and whether weights are weft's."""
    if ".py:" in model:
        path, name = model.rsplit(":", 1)
        spec = importlib.util.spec_from_file_location("kernels", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return getattr(module, name), tuple(inputs), {}, True
    if model.endswith(".json.zip"):
        program, same = load_graph(model, folder, device)
    else:
        program, same = moved(torch.export.load(model), device), True
    flat, rest = [], list(inputs)
    for spec in program.graph_signature.input_specs:
        if spec.kind.name == "USER_INPUT":
            flat.append(spec.arg.value if type(spec.arg).__name__ == "ConstantArgument" else rest.pop(0))
    args, kwargs = tree_unflatten(flat, program.call_spec.in_spec)
    return module_of(program), args, kwargs, same


def leaves(result):
    return [t for t in tree_flatten(result)[0] if isinstance(t, torch.Tensor)]


class Float64(TorchDispatchMode):
    """Computes in float64 whatever type the model asks for."""

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if "assert_tensor_metadata" in str(function):
            return None

        def wide(x):
            return torch.float64 if isinstance(x, torch.dtype) and x.is_floating_point else x

        return function(*tree_map(wide, args), **tree_map(wide, kwargs or {}))


def doubled(x):
    return x.double() if isinstance(x, torch.Tensor) and x.is_floating_point() else x


def reference(function, args, kwargs):
    """The outputs in float64."""
    import copy

    if isinstance(function, torch.nn.Module):
        function = copy.deepcopy(function)
        for m in function.modules():
            for table in (m._parameters, m._buffers):
                for name, t in table.items():
                    if t is not None and t.is_floating_point():
                        table[name] = torch.nn.Parameter(t.double(), requires_grad=False) if table is m._parameters else t.double()
            for name, t in list(vars(m).items()):
                if isinstance(t, torch.Tensor) and t.is_floating_point():
                    setattr(m, name, t.double())
    with Float64():
        return leaves(function(*tree_map(doubled, args), **tree_map(doubled, kwargs)))


def error(got, want):
    """The largest and the root mean square difference over all outputs, the latter also relative to the outputs' own, and
    how many elements are out of tolerance."""
    largest, squares, size, count, out = 0.0, 0.0, 0.0, 0, 0
    if len(got) != len(want):
        raise ValueError(f"{len(got)} outputs, not {len(want)}")
    for g, w in zip(got, want):
        if g.shape != w.shape:
            raise ValueError(f"an output of shape {list(g.shape)}, not {list(w.shape)}")
        if g.numel() == 0:
            continue
        rtol, atol = TOLERANCE.get(g.dtype, (0, 0))
        g, w = g.to(torch.float64), w.to(torch.float64)
        same = (g == w) | (g.isnan() & w.isnan())
        d = torch.where(same, torch.zeros_like(g), (g - w).abs())
        d = torch.nan_to_num(d, nan=float("inf"))
        largest = max(largest, d.max().item())
        squares += (d * d).sum().item()
        size += torch.nan_to_num(w * w, nan=0.0, posinf=0.0).sum().item()
        count += d.numel()
        out += (d > atol + rtol * w.abs()).sum().item()
    rms = (squares / max(count, 1)) ** 0.5
    relative = (squares / size) ** 0.5 if size > 0 else 0.0
    return {"max": largest, "rms": rms, "relative": relative, "outside": out, "elements": count}


def report(who, got, want, eager):
    """Says how far outputs are from float64. Weights may be so small that tolerances hold for any outputs, so what counts
    is the error of eager PyTorch: half types may have 1.25 times its root mean square, others, where the order of a sum
    is all there is, 10 times. Where eager PyTorch is exact all elements must be within tolerance."""
    e = error(got, want)
    factor = 1.25 if any(t.dtype in HALF for t in got) else 10
    agrees = e["rms"] <= factor * eager["rms"] if eager["rms"] > 0 else e["outside"] == 0
    finite = {k: v if v == v and abs(v) != float("inf") else str(v) for k, v in e.items()}
    say(check=who, agrees=agrees, **finite)
    return e


def synchronize(device):
    if device == "cuda":
        torch.cuda.synchronize()


def measure(call, device, steps, warmup):
    """Milliseconds of single runs: by events, all enqueued before the first is read; on a CPU wall time."""
    for _ in range(warmup):
        call()
    synchronize(device)
    if device != "cuda":
        times = []
        for _ in range(steps):
            start = time.perf_counter()
            call()
            times.append((time.perf_counter() - start) * 1e3)
        return sorted(times)
    events = [(torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)) for _ in range(steps)]
    for start, end in events:
        start.record()
        call()
        end.record()
    torch.cuda.synchronize()
    return sorted(start.elapsed_time(end) for start, end in events)


class Budget(BaseException):
    """No Exception: compilers catch those of their own parts and go on."""


def out_of_time(signum, frame):
    raise Budget("stopped: the time budget is used up")


def run_mode(mode, function, args, kwargs, want, eager_error, a):
    f = function
    if mode != "eager":
        torch._dynamo.reset()
        f = torch.compile(function, mode=None if mode == "default" else mode)

    def call():
        return f(*args, **kwargs)

    began = time.monotonic()
    got = [t.clone() for t in leaves(call())]
    synchronize(a.device)
    first = time.monotonic() - began
    e = report(mode, got, want, eager_error) if want is not None else None
    del got
    if a.device == "cuda":
        torch.cuda.reset_peak_memory_stats()
    times = measure(call, a.device, a.steps, a.warmup)
    peak = torch.cuda.max_memory_allocated() if a.device == "cuda" else 0
    middle = (times[(len(times) - 1) // 2] + times[len(times) // 2]) / 2
    say(mode=mode, median_ms=round(middle, 5), min_ms=round(times[0], 5), max_ms=round(times[-1], 5), count=len(times),
        first_call_s=round(first, 2), peak_bytes=peak)
    return e, first


def arguments():
    p = argparse.ArgumentParser()
    p.add_argument("folder")
    p.add_argument("model")
    p.add_argument("--device", default="cuda")
    p.add_argument("--modes", default="eager,default,reduce-overhead,max-autotune")
    p.add_argument("--steps", type=int, default=50)
    p.add_argument("--warmup", type=int, default=10)
    p.add_argument("--budget", type=float, default=300)
    return p.parse_args()


def main():
    a = arguments()
    name = torch.cuda.get_device_name() if a.device == "cuda" else "CPU"
    say(torch=torch.__version__, device=name, cuda=torch.version.cuda or "")
    signal.signal(signal.SIGALRM, out_of_time)
    # float32 means float32 on both sides: cuDNN would use TF32 by default.
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    inputs = numbered(read_safetensors(f"{a.folder}/inputs.safetensors", a.device), "in.")
    ours = numbered(read_safetensors(f"{a.folder}/outputs.safetensors", a.device), "out.")
    function, args, kwargs, same = load(a.model, a.folder, a.device, inputs)
    with torch.no_grad():
        want = None
        try:
            want = reference(function, args, kwargs)
        except Exception as e:
            say(note="no float64 reference, outputs are compared with eager PyTorch's: " + brief(e))
            want = [t.clone() for t in leaves(function(*args, **kwargs))]
        eager_error = error([t for t in leaves(function(*args, **kwargs))], want)
        if same:
            report("weft", ours, want, eager_error)
        else:
            say(note="weft ran with other weights: its outputs are not compared")
        del ours
        longest = 0.0
        for mode in a.modes.split(","):
            left = a.budget - (time.monotonic() - START)
            # max-autotune took 3 to 4 times as long as the others wherever it was measured.
            need = 3 * longest if mode == "max-autotune" else longest / 2
            if left < max(need, 1):
                say(mode=mode, error=f"left out: {left:.0f} s of the budget are left")
                continue
            signal.alarm(max(int(left), 1))
            try:
                _, first = run_mode(mode, function, args, kwargs, want, eager_error, a)
                longest = max(longest, first)
            except (Exception, Budget) as e:
                say(mode=mode, error=brief(e))
            finally:
                signal.alarm(0)


if __name__ == "__main__":
    main()
    # Compilers' worker processes are not waited for.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)
