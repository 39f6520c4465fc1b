"""Exports the models of catalogue.py, and says which of them weft compiles and runs:

    sweep.py export FOLDER VARIANT [NAME...]   writes models and reference outputs to FOLDER/MODEL/
    sweep.py check  FOLDER WEFT [NAME...]      compiles and runs them on the emulator with the command WEFT
    sweep.py table  FOLDER > coverage.md       the table

What is there already is kept; results are in FOLDER/MODEL/*.json. There are three VARIANTs of a model: with fixed sizes (static), with
symbolic batch and length (dynamic), and with fixed sizes as ONNX by torch.onnx.export(dynamo=True) (onnx). The dynamic export is
run with sizes other than those that it was exported with.
"""
import json
import os
import re
import subprocess
import sys
import time
import traceback
import warnings
from collections import Counter, defaultdict
from pathlib import Path

VARIANTS = ('static', 'dynamic', 'onnx')
FILES = {'static': 'static.pt2', 'dynamic': 'dynamic.pt2', 'onnx': 'model.onnx'}
SIZES = (2, 8), (3, 11)
LIMIT = 240  # seconds for one command


def plain(text):
    "Text without colours."
    return re.sub(r'\x1b?\[[0-9]+m', '', text)


def beginning(error):
    "The type of an exception, and the beginning of its text."
    lines = [x.strip() for x in str(error).strip().splitlines() if x.strip()]
    return plain(type(error).__name__ + ': ' + ' '.join(lines))[:260]


def references(module, inputs, path):
    "Inputs and the plain module's outputs."
    import torch
    from catalogue import tensors
    from safetensors.torch import save_file
    with torch.no_grad():
        outputs = tensors(module(*inputs))
        values = {f'in.{i}': t.clone() for i, t in enumerate(inputs)} | {f'out.{i}': t.clone().contiguous() for i, t in enumerate(outputs)}
    save_file(values, path)
    return outputs


def conditioning(module, inputs, outputs):
    "How far a float64 run is from the float32 one, in units of the default tolerance; None where the module has no float64 form."
    import copy
    import torch
    from catalogue import tensors
    try:
        with torch.no_grad():
            wide = tensors(copy.deepcopy(module).double()(*[t.double() if t.dtype == torch.float32 else t for t in inputs]))
    except Exception:
        return None
    worst = 0.0
    for got, want in zip(outputs, wide):
        if want.dtype == torch.float64:
            worst = max(worst, ((got.double() - want).abs() / (1e-5 + 1e-4 * want.abs())).max().item())
    return worst


def symbolic(dims):
    import torch
    made = {}
    return tuple({axis: made.setdefault(name, torch.export.Dim(name, min=2, max=32)) for axis, name in d.items()} for d in dims)


def prepare(model, folder):
    "The module, its inputs and its dims; reference outputs are written with the first export."
    import torch
    torch.manual_seed(0)
    module, inputs = model.make(*SIZES[0])
    module.eval()
    dims = symbolic(model.dims)
    if type(module).__name__ == 'Tensors':
        dims = (dims,)  # its forward takes *args
    if not (folder / 'model.json').exists():
        outputs = references(module, inputs, folder / 'io.safetensors')
        torch.manual_seed(1)
        references(module, model.make(*SIZES[1])[1], folder / 'io_other.safetensors')
        (folder / 'model.json').write_text(json.dumps({'conditioning': conditioning(module, inputs, outputs)}))
    return module, inputs, dims


def export_variant(model, folder, variant):
    import torch
    module, inputs, dims = prepare(model, folder)
    if variant == 'onnx':
        torch.onnx.export(module, inputs, dynamo=True, verbose=False).save(folder / FILES['onnx'])
        return
    made = torch.export.export(module, inputs, dynamic_shapes=dims if variant == 'dynamic' else None, strict=False)
    torch.export.save(made, folder / FILES[variant])


def export(root, variant, names):
    import torch
    from catalogue import MODELS
    torch.set_num_threads(1)
    for model in MODELS:
        folder = root / place(model)
        done = folder / f'export_{variant}.json'
        if names and model.name not in names or not names and done.exists():
            continue
        if variant != 'static' and not (folder / FILES['static']).exists():
            continue
        folder.mkdir(parents=True, exist_ok=True)
        started, error = time.time(), None
        try:
            export_variant(model, folder, variant)
        except Exception as e:
            error = beginning(e)
            if os.environ.get('SWEEP_TRACE'):
                traceback.print_exc()
        ran = (folder / 'model.json').exists()
        done.write_text(json.dumps({'error': error, 'ran': ran, 'seconds': round(time.time() - started, 1)}))
        print(f'{model.library} {model.name} {variant}: {error or "exported"} ({time.time() - started:.0f} s)', flush=True)


def place(model):
    return f'{model.library}-{model.name}'.replace(' ', '_')


def run(weft, *args):
    "Exit status, the first error's code, and the text."
    try:
        p = subprocess.run([weft, *map(str, args)], capture_output=True, text=True, timeout=LIMIT)
    except subprocess.TimeoutExpired:
        return 124, '', f'no result in {LIMIT} seconds'
    text = p.stdout + p.stderr
    code = re.search(r'error (W\d{4})', text)
    return p.returncode, code.group(1) if code else '', text


def tolerances(folder):
    "The command's own, or eight times the error that PyTorch's float32 run has against float64, where that is more."
    factor = 8 * (json.loads((folder / 'model.json').read_text())['conditioning'] or 0)
    return ('--rtol', f'{1e-4 * factor:.3g}', '--atol', f'{1e-5 * factor:.3g}') if factor > 1 else ()


def check_variant(weft, folder, variant):
    path = folder / FILES[variant]
    status, code, text = run(weft, 'support', path)
    if status:
        return {'result': 'unsupported', 'status': status, 'code': code, 'text': text}
    if (json.loads((folder / 'model.json').read_text())['conditioning'] or 0) > 25:
        return {'result': 'compiles', 'status': 0, 'code': '', 'text': text}
    io = folder / ('io_other.safetensors' if variant == 'dynamic' else 'io.safetensors')
    status, code, text = run(weft, 'run', path, '--device', 'emu', '--inputs', io, '--expect', io, *tolerances(folder))
    result = 'agrees' if status == 0 else 'differs' if status == 1 else 'fails'
    return {'result': result, 'status': status, 'code': code, 'text': text}


def check(root, weft, names):
    from catalogue import MODELS
    for model in MODELS:
        folder = root / place(model)
        for variant in VARIANTS:
            done = folder / f'check_{variant}.json'
            if not (folder / FILES[variant]).exists() or names and model.name not in names or not names and done.exists():
                continue
            result = check_variant(weft, folder, variant)
            done.write_text(json.dumps(result))
            print(f'{model.library} {model.name} {variant}: {result["result"]} {result["code"]}', flush=True)


SIGNS = {'agrees': '✓', 'differs': 'differs', 'fails': 'fails', 'compiles': 'compiles'}


def read(folder, name):
    path = folder / name
    return json.loads(path.read_text()) if path.exists() else None


def cell(folder, variant, causes, model):
    exported, checked = read(folder, f'export_{variant}.json'), read(folder, f'check_{variant}.json')
    if exported is None:
        return ''
    if exported['error']:
        exported['error'] = re.sub(r' (This is step|For more information|consider using).*?(?= - |$)', '', exported['error'])
        exported['error'] = re.sub(r' - (Create an issue|If there is a missing|If you).*', '', exported['error'])[:150].rstrip(' -')
        causes['not exported', plain(exported['error']) if exported['ran'] else 'this configuration does not run: ' + exported['error']].append(f'{model} ({variant})')
        return 'not exported'
    if checked is None:
        return ''
    if checked['result'] in ('agrees', 'compiles'):
        return SIGNS[checked['result']]
    lines = [x.strip() for x in checked['text'].splitlines()]
    notes = [re.sub(r', at .*|: (once|[0-9]+ times)', '', x.removeprefix('note: ')) for x in lines if x.startswith('note: ')]
    errors = [re.sub(r'^.*?error ', '', x) for x in lines if ' error W' in x]
    for cause in (notes if checked['code'] == 'W2001' and notes else errors or [checked['result']]):
        causes[checked['code'] or checked['result'], cause[:160]].append(f'{model} ({variant})')
    return checked['code'] or checked['result']


def versions():
    from importlib.metadata import version
    return ', '.join(f'{p} {version(p)}' for p in ('torch', 'torchvision', 'transformers', 'timm', 'onnx', 'onnxscript'))


def table(root):
    from catalogue import MODELS
    causes, rows, counts = defaultdict(list), [], Counter()
    for model in MODELS:
        cells = [cell(root / place(model), v, causes, model.name) for v in VARIANTS]
        counts.update((v, c) for v, c in zip(VARIANTS, cells))
        if any(cells):
            rows.append((model.library, model.name, *cells))
    print(HEAD.format(versions=versions()))
    print('| | tried | ✓ | compiles | not exported | other |\n|---|---|---|---|---|---|')
    for v in VARIANTS:
        of = {c: n for (w, c), n in counts.items() if w == v and c}
        tried = sum(of.values())
        known = [of.get(c, 0) for c in ('✓', 'compiles', 'not exported')]
        print(f'| {v} | {tried} | {known[0]} | {known[1]} | {known[2]} | {tried - sum(known)} |')
    print('\n## What does not work\n\nBy how many models it concerns.\n\n| | cause | models |\n|---|---|---|')
    for (code, cause), where in sorted(causes.items(), key=lambda x: (-len(x[1]), x[0])):
        print(f'| {code} | {cause.replace("|", "/")} | {", ".join(where)} |')
    for library in 'transformers', 'torchvision', 'timm', 'PyTorch':
        print(f'\n## {library}\n\n| model | {" | ".join(VARIANTS)} |\n|---|---|---|---|')
        for row in rows:
            if row[0] == library:
                print('| ' + ' | '.join(row[1:]) + ' |')


HEAD = """# Coverage

Architectures of transformers, torchvision and timm, and what becomes of them: exported, compiled, and run on the emulator
against PyTorch. `testdata/export/recipes/sweep.py` wrote this page; `catalogue.py` beside it has the configurations, which are tiny
(two layers, width 32) for transformers, and small images for the others, with random weights. Those under PyTorch are `patterns.py`. Versions: {versions}.

- **static**: a `.pt2` with fixed sizes. **dynamic**: a `.pt2` with symbolic batch, and length for text, run with other sizes than
  it was exported with. **onnx**: with fixed sizes by `torch.onnx.export(dynamo=True)`.
- ✓: compiles, and all outputs agree within the default tolerances; or within eight times the error that PyTorch's own float32 run
  has against float64, where that is larger.
- compiles: kernels and plans are made; with random weights the network is so ill-conditioned that a comparison means nothing
  (PyTorch's float32 run is off by more than 25 tolerances).
- A code is weft's diagnostic ([errors.md](errors.md)). W0007 is a difference beyond that; `--device
  reference` tells for each whether it is rounding. Nothing in a cell: not tried.
"""


def main(argv):
    warnings.filterwarnings('ignore')
    if len(argv) > 2 and argv[0] == 'export' and argv[2] in VARIANTS:
        return export(Path(argv[1]), argv[2], set(argv[3:]))
    if len(argv) > 2 and argv[0] == 'check':
        return check(Path(argv[1]), argv[2], set(argv[3:]))
    if len(argv) == 2 and argv[0] == 'table':
        return table(Path(argv[1]))
    sys.exit(__doc__)


if __name__ == '__main__':
    main(sys.argv[1:])
