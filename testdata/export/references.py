"""Further reference outputs for exported programs that exist already:  python3 references.py [FOLDER]

FOLDER holds NAME/model.pt2 files, some of them by older PyTorch; the default is testdata/models. The programs are loaded by
the PyTorch of requirements.txt, first checked against their io.safetensors, then run on other seeded inputs.
"""
import sys
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

import fixture


def batches(*sizes):
    return {f'batch{n}': lambda n=n: (torch.randn(n, 64),) for n in sizes}


def padded():
    mask = torch.ones(2, 32, dtype=torch.long)
    mask[1, 20:] = 0
    return torch.randint(0, 256, (2, 32)), mask


def repeated(*counts):
    return {f'times{n}': lambda n=n: (torch.randn(4, 4), torch.tensor(n)) for n in counts}


INPUTS = {
    'cond': {'negative': lambda: (-torch.rand(4, 4),)},  # the other branch
    'while_loop': repeated(0, 1, 12),
    'mlp': batches(1, 64),
    'gpt2_tiny': {'seed1': lambda: (torch.randint(0, 256, (2, 32)),)},
    'bert_tiny': {'padded': padded},
    'vit_tiny': {'seed1': lambda: (torch.randn(2, 3, 32, 32),)},
}


def check(name, module, folder):
    "The loaded program must still compute what it did where it was made."
    stored = load_file(folder / 'io.safetensors')
    count = sum(k.startswith('in.') for k in stored)
    got = fixture.run(module, tuple(stored[f'in.{i}'] for i in range(count)))
    for k in (k for k in stored if k.startswith('out.')):
        err = fixture.largest_error(got[k], stored[k])
        if err > 0.5:
            raise ValueError(f'{name} {k}: differs by {err:.2f} of the tolerance')


def main(argv):
    root = Path(argv[0]) if argv else Path(__file__).parent.parent / 'models'
    for name, inputs in INPUTS.items():
        folder = root / name
        module = torch.export.load(folder / 'model.pt2').module()
        check(name, module, folder)
        for word, make in inputs.items():
            torch.manual_seed(1)
            save_file(fixture.run(module, make()), folder / f'io_{word}.safetensors')
            print(f'{name}: io_{word}.safetensors')


if __name__ == '__main__':
    main(sys.argv[1:])
