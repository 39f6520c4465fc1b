"""A decoder of transformers with a key/value cache that lives between runs:  python3 static_cache.py FOLDER

Two programs over the same weights and the same cache: prefill takes a prompt, decode one token.

    weft compile prefill=FOLDER/prefill.pt2 decode=FOLDER/decode.pt2 --target sm_90a -o chat.weft
    weft run chat.weft --device emu --before prefill=FOLDER/prefill.safetensors --entry decode \\
        --inputs FOLDER/decode.safetensors --expect FOLDER/decode.safetensors
"""
import copy
import sys
from pathlib import Path

import torch
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM, LlamaConfig, StaticCache

BATCH, PROMPT, LENGTH = 1, 8, 32


class Cached(torch.nn.Module):
    "The cache's tensors are buffers, so that they are states of the program, which a run changes in place."

    def __init__(self, model, batch, length):
        super().__init__()
        self.model = model
        self.cache = StaticCache(config=model.config, max_cache_len=length)
        heads = model.config.num_key_value_heads
        self.cache.early_initialization(batch, heads, model.config.head_dim, model.dtype, model.device)
        for i, layer in enumerate(self.cache.layers):
            self.register_buffer(f'keys_{i}', layer.keys)
            self.register_buffer(f'values_{i}', layer.values)

    def forward(self, input_ids, position):
        for i, layer in enumerate(self.cache.layers):  # export replaces the buffers, so take them from here
            layer.keys, layer.values = getattr(self, f'keys_{i}'), getattr(self, f'values_{i}')
            layer.cumulative_length = position[:1].clone()
        past = torch.arange(self.keys_0.shape[2])
        mask = (past <= position.unsqueeze(-1))[None, None]
        return self.model(input_ids=input_ids, position_ids=position.unsqueeze(0), attention_mask=mask, past_key_values=self.cache,
                          use_cache=True).logits


def main(folder):
    torch.manual_seed(0)
    config = LlamaConfig(vocab_size=128, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
                         num_key_value_heads=2, max_position_embeddings=64, initializer_range=0.1)
    model = Cached(AutoModelForCausalLM.from_config(config), BATCH, LENGTH).eval()
    prompt = torch.randint(128, (BATCH, PROMPT)), torch.arange(PROMPT)
    token = torch.randint(128, (BATCH, 1)), torch.tensor([PROMPT])
    for name, args in ('prefill', prompt), ('decode', token):
        program = torch.export.export(copy.deepcopy(model), args, strict=False)
        torch.export.save(program, folder / f'{name}.pt2')
    with torch.no_grad():
        whole = model.model(input_ids=torch.cat([prompt[0], token[0]], 1), use_cache=False).logits
    for name, args, logits in ('prefill', prompt, whole[:, :PROMPT]), ('decode', token, whole[:, PROMPT:]):
        save_file({'in.0': args[0], 'in.1': args[1], 'out.0': logits.contiguous()}, folder / f'{name}.safetensors')


if __name__ == '__main__':
    main(Path(sys.argv[1]))
