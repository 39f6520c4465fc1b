"""One decoder with a static key/value cache, exported twice: as the prefill of a prompt, and as the step for one more token.

Both programs have the same parameters, and the cache as buffers, so that weft makes one artifact of them. The inputs of
cache_decode's io_stepN are the tokens that the model itself chooses after the prompt of cache_prefill's io, one after the other.
"""
import copy

import torch
from torch import nn
from torch.nn import functional as F

from fixture import Case

VOCABULARY, WIDTH, HEADS, LAYERS, LENGTH, PROMPT, STEPS = 64, 16, 2, 1, 16, 8, 3


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)
        for name in 'keys', 'values':
            self.register_buffer(name, torch.zeros(1, HEADS, LENGTH, WIDTH // HEADS))

    def forward(self, x, position):
        q, k, v = (t.view(1, -1, HEADS, WIDTH // HEADS).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
        self.keys.index_copy_(2, position, k)
        self.values.index_copy_(2, position, v)
        mask = torch.arange(LENGTH) <= position.unsqueeze(-1)
        y = F.scaled_dot_product_attention(q, self.keys, self.values, mask)
        return self.out(y.transpose(1, 2).reshape(1, -1, WIDTH))


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = Attention()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, x, position):
        x = x + self.attention(self.norm1(x), position)
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Decoder(nn.Module):
    "Logits of each token; the cache then holds the tokens' keys and values at their positions."

    def __init__(self):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, ids, position):
        x = self.tokens(ids) + self.positions(position)
        for layer in self.layers:
            x = layer(x, position)
        return self.head(self.norm(x))


def decoder():
    torch.manual_seed(0)
    return Decoder().eval()


def prompt():
    return torch.arange(3, 3 + PROMPT).unsqueeze(0) * 7 % VOCABULARY, torch.arange(PROMPT)


def prefill():
    return Case('cache_prefill', decoder(), prompt(), onnx=False)


def decode():
    "Each step starts with the cache that the steps before have left."
    module, more, before = decoder(), {}, {}
    running = copy.deepcopy(module)
    with torch.no_grad():
        logits = running(*prompt())
        for n in range(STEPS):
            word = f'step{n}'
            before[word] = {k: t.clone() for k, t in running.named_buffers()}
            more[word] = logits[:, -1:].argmax(-1), torch.tensor([PROMPT + n])
            logits = running(*more[word])
    return Case('cache_decode', module, (torch.tensor([[1]]), torch.tensor([0])), more=more, before=before, onnx=False)


CASES = (prefill, decode)
