"""Writes the fixtures of testdata/models that PyTorch 2.15 makes:  python3 export.py [FOLDER [NAME...]]

Needs requirements.txt. Weights and inputs are random with fixed seeds. Every ONNX file is run by onnxruntime before it is kept.
"""
import sys
import warnings
from pathlib import Path

import torch

import cache
import fixture
import joint
import kinds
import models
import narrow
import operators
import signals


def main(argv):
    root = Path(argv[0]) if argv else Path(__file__).parent.parent / 'models'
    only = set(argv[1:])
    failed = 0
    for make in models.CASES + cache.CASES + operators.CASES + narrow.CASES + kinds.CASES + joint.CASES + signals.CASES:
        torch.manual_seed(0)
        case = make()
        if only and case.name not in only:
            continue
        try:
            print(fixture.write(case, root), flush=True)
        except Exception as e:
            failed += 1
            print(f'{case.name}: FAILED: {type(e).__name__}: {e}', flush=True)
    return failed > 0


if __name__ == '__main__':
    warnings.filterwarnings('ignore', category=UserWarning)
    sys.exit(main(sys.argv[1:]))
