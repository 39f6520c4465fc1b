"""A model with weight_norm, which weft has as its parts:  python3 speech.py FOLDER"""
import sys
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch.nn.utils import parametrize
from transformers import HubertConfig, HubertModel


class LastHidden(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, samples):
        return self.model(samples).last_hidden_state


def main(folder):
    torch.manual_seed(0)
    config = HubertConfig(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, conv_dim=(16, 16),
                          conv_stride=(5, 2), conv_kernel=(10, 3), num_feat_extract_layers=2, num_conv_pos_embeddings=16,
                          num_conv_pos_embedding_groups=4, apply_spec_augment=False)
    model = LastHidden(HubertModel(config)).eval()
    samples = torch.randn(2, 800)
    with torch.no_grad():
        save_file({'in.0': samples, 'out.0': model(samples)}, folder / 'hubert.safetensors')
    # Parametrisations are for training: compute their weights once.
    for m in model.modules():
        if parametrize.is_parametrized(m):
            for name in list(m.parametrizations):
                parametrize.remove_parametrizations(m, name)
    torch.export.save(torch.export.export(model, (samples,), strict=False), folder / 'hubert.pt2')


if __name__ == '__main__':
    main(Path(sys.argv[1]))
