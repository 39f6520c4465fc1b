"""Further reference outputs for exported programs that exist already:  python3 references.py [FOLDER]

FOLDER holds NAME/model.pt2 files, some of them by older PyTorch, of which those are taken that are listed here; the default
is testdata/models, for what export.py does not make. The programs are loaded by
the PyTorch of requirements.txt, first checked against their io.safetensors, then run on other seeded inputs.
"""
import sys
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

import fixture
import kinds


def batches(*sizes):
    return {f'batch{n}': lambda n=n: (torch.randn(n, 64),) for n in sizes}


def padded():
    mask = torch.ones(2, 32, dtype=torch.long)
    mask[1, 20:] = 0
    return torch.randint(0, 256, (2, 32)), mask


def repeated(*counts):
    return {f'times{n}': lambda n=n: (torch.randn(4, 4), torch.tensor(n)) for n in counts}


def prompts(*shapes):
    return {f'{b}x{n}': lambda b=b, n=n: (torch.randint(0, 256, (b, n)),) for b, n in shapes}


def ids():
    return torch.randint(0, 256, (2, 32))


INPUTS = {
    'cond': {'negative': lambda: (-torch.rand(4, 4),)},  # the other branch
    'while_loop': repeated(0, 1, 12),
    'mlp': batches(1, 64),
    'mlp_loss': {'seed1': lambda: (torch.randn(8, 64), torch.randint(0, 10, (8,)))},
    'gpt2_tiny': {'seed1': lambda: (ids(),)},
    'gpt2_tiny_dynamic': prompts((1, 2), (1, 7), (2, 33), (3, 64)),
    'gpt2_tiny_loss': {'seed1': lambda: (ids(), ids())},
    'llama_tiny': {'seed1': lambda: (ids(),)},
    'llama_tiny_loss': {'seed1': lambda: (ids(), ids())},
    'lstm': {'seed1': lambda: (torch.randn(2, 12, 32),)},
    'checkpointed': {'seed1': lambda: (torch.randn(8, 64),)},
    'bert_tiny': {'padded': padded},
    'vit_tiny': {'seed1': lambda: (torch.randn(2, 3, 32, 32),)},
}

# Runs one after the other over one state, which each reads as the one before has left it.
STEPS = {
    'decode_step': [lambda n=n: (torch.randn(1, 1, 64), torch.tensor([n])) for n in range(3)],
    'batchnorm_train': [lambda n=n: (torch.randn(4, 3, 16, 16) * (n + 1) + n,) for n in range(3)],
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


def steps(module, makers, folder):
    "Writes io_stepN.safetensors, and changes the module's buffers."
    for n, make in enumerate(makers):
        args = make()
        save_file(fixture.run(module, args), folder / f'io_step{n}.safetensors')
        with torch.no_grad():
            module(*args)


def main(argv):
    root = Path(argv[0]) if argv else Path(__file__).parent.parent / 'models'
    for name in sorted(INPUTS.keys() | STEPS.keys()):
        folder = root / name
        if not (folder / 'model.pt2').exists() or (not argv and made_elsewhere(folder)):
            continue
        module = torch.export.load(folder / 'model.pt2').module()
        check(name, module, folder)
        for word, make in INPUTS.get(name, {}).items():
            torch.manual_seed(1)
            save_file(fixture.run(module, make()), folder / f'io_{word}.safetensors')
        torch.manual_seed(1)
        steps(module, STEPS.get(name, ()), folder)
        print(f'{name}: {", ".join(sorted(p.name for p in folder.glob("io_*")))}')


def made_elsewhere(folder):
    "Whether export.py makes the folder, further references included."
    return folder.name in {make().name for make in kinds.CASES}


if __name__ == '__main__':
    main(sys.argv[1:])
