"""A network of torchvision and one of timm, with symbolic batch:  python3 vision.py FOLDER

    weft compile FOLDER/resnet18.pt2 --target sm_90a --dim in.0[0]=batch:1..64 -o resnet18.weft
"""
import sys
from pathlib import Path

import timm
import torch
import torchvision
from safetensors.torch import save_file
from torch.export import Dim


def calibrate(model):
    "Random weights only: statistics of batch norms, which a trained model has."
    model.train()
    for m in model.modules():
        if isinstance(m, torch.nn.BatchNorm2d):
            m.momentum = None
    with torch.no_grad():
        model(torch.randn(4, 3, 64, 64))


def main(folder):
    torch.manual_seed(0)
    models = {'resnet18': torchvision.models.resnet18(weights=None), 'mobilenetv3': timm.create_model('mobilenetv3_small_050', pretrained=False)}
    for name, model in models.items():
        calibrate(model)
        model.eval()  # batch norms use their statistics, dropout does nothing
        images = torch.randn(2, 3, 64, 64)
        program = torch.export.export(model, (images,), dynamic_shapes=({0: Dim('batch', min=1, max=64)},), strict=False)
        torch.export.save(program, folder / f'{name}.pt2')
        images = torch.randn(3, 3, 64, 64)
        with torch.no_grad():
            save_file({'in.0': images, 'out.0': model(images)}, folder / f'{name}.safetensors')


if __name__ == '__main__':
    main(Path(sys.argv[1]))
