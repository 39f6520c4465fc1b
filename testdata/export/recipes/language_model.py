"""A decoder of transformers with symbolic batch and length:  python3 language_model.py FOLDER

    weft compile FOLDER/llama.pt2 --target sm_90a --dim in.0[0]=batch --dim in.0[1]=length -o llama.weft
"""
import sys
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch.export import Dim
from transformers import AutoModelForCausalLM, LlamaConfig


class Logits(torch.nn.Module):
    "From tensors to a tensor: an exported program takes no options, and its result is to be no dataclass."

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids):
        return self.model(input_ids=input_ids, use_cache=False).logits


def main(folder):
    torch.manual_seed(0)
    config = LlamaConfig(vocab_size=128, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
                         num_key_value_heads=2, max_position_embeddings=64, initializer_range=0.1)
    for name, dtype in ('llama', torch.float32), ('llama_bf16', torch.bfloat16):
        # A pretrained one: AutoModelForCausalLM.from_pretrained(FOLDER, dtype=torch.bfloat16)
        model = Logits(AutoModelForCausalLM.from_config(config).to(dtype)).eval()
        dims = {'input_ids': {0: Dim('batch', min=1, max=16), 1: Dim('length', min=2, max=64)}}
        program = torch.export.export(model, (torch.randint(128, (2, 8)),), dynamic_shapes=dims, strict=False)
        torch.export.save(program, folder / f'{name}.pt2')
        ids = torch.randint(128, (3, 11))
        with torch.no_grad():
            save_file({'in.0': ids, 'out.0': model(ids)}, folder / f'{name}.safetensors')


if __name__ == '__main__':
    main(Path(sys.argv[1]))
