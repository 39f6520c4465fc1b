"""One small model of each kind of program that people export, with seeded random weights.

The kinds are those of larger collections of exported models; where WEFT_MODELS names such a folder, tests treat its programs
like these.
"""
import copy

import torch
import torch.nn.functional as F
from torch import nn

from fixture import Case

VOCABULARY, LENGTH = 64, 16


def token_ids(*shape):
    return torch.randint(0, VOCABULARY, shape)


class Logits(nn.Module):
    "A language model as a function from ids to logits."

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, ids):
        return self.model(ids, use_cache=False).logits


class Loss(nn.Module):
    "The mean cross entropy of a model's scores and the labels."

    def __init__(self, scores):
        super().__init__()
        self.scores = scores

    def forward(self, x, labels):
        y = self.scores(x)
        return F.cross_entropy(y.flatten(0, -2), labels.flatten())


def gpt2():
    import transformers
    return Logits(transformers.GPT2LMHeadModel(transformers.GPT2Config(
        n_layer=2, n_head=2, n_embd=16, vocab_size=VOCABULARY, n_positions=LENGTH, initializer_range=0.2)))


def llama(scale=0.1):
    "Four query heads share two key/value heads."
    import transformers
    return Logits(transformers.LlamaForCausalLM(transformers.LlamaConfig(
        hidden_size=32, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, intermediate_size=48,
        vocab_size=VOCABULARY, max_position_embeddings=LENGTH, initializer_range=scale)))


def gpt2_tiny_dynamic():
    "Batch and length are symbolic; lengths from one token to as many as there are positions."
    dims = {0: torch.export.Dim('batch', min=1, max=8), 1: torch.export.Dim('length', min=1, max=LENGTH)}
    more = {f'{b}x{n}': (token_ids(b, n),) for b, n in ((1, 1), (2, 2), (1, 5), (3, 9), (8, LENGTH))}
    return Case('gpt2_tiny_dynamic', gpt2(), (token_ids(2, 12),), dynamic=(dims,), more=more)


def llama_tiny():
    return Case('llama_tiny', llama(), (token_ids(2, LENGTH),), more={'seed1': (token_ids(2, LENGTH),)})


def llama_tiny_bf16():
    return Case('llama_tiny_bf16', llama(0.05).bfloat16(), (token_ids(2, LENGTH),), more={'seed1': (token_ids(2, LENGTH),)}, float64=False)


def gpt2_tiny_loss():
    return Case('gpt2_tiny_loss', Loss(gpt2()), (token_ids(2, LENGTH), token_ids(2, LENGTH)), more={'seed1': (token_ids(2, LENGTH), token_ids(2, LENGTH))})


def llama_tiny_loss():
    return Case('llama_tiny_loss', Loss(llama()), (token_ids(2, LENGTH), token_ids(2, LENGTH)), more={'seed1': (token_ids(2, LENGTH), token_ids(2, LENGTH))})


def mlp_loss():
    net = Loss(nn.Sequential(nn.Linear(16, 24), nn.GELU(), nn.LayerNorm(24), nn.Linear(24, 10)))
    return Case('mlp_loss', net, (torch.randn(8, 16), torch.randint(0, 10, (8,))), more={'seed1': (torch.randn(8, 16), torch.randint(0, 10, (8,)))})


class Recurrent(nn.Module):
    def __init__(self, kind, **options):
        super().__init__()
        self.net = kind(6, 10, num_layers=2, batch_first=True, **options)

    def forward(self, x):
        y, state = self.net(x)
        return (y, *state) if isinstance(state, tuple) else (y, state)


def recurrent(name, kind, length):
    "torch.export fixes the length of a recurrent network; the batch is symbolic."
    more = {f'batch{n}': (torch.randn(n, length, 6),) for n in (1, 5)}
    return Case(name, Recurrent(kind), (torch.randn(2, length, 6),), dynamic=({0: torch.export.Dim('batch', min=1, max=16)},), more=more,
                onnx=kind is nn.LSTM and length < 20)  # the exporter unrolls the others, which says nothing more


def traced(name, kind, **options):
    "What the tracing ONNX exporter writes has a symbolic length too."
    more = {f'{b}x{n}': (torch.randn(b, n, 6),) for b, n in ((1, 1), (2, 3), (3, 33), (5, 64))}
    return Case(name, Recurrent(kind, **options), (torch.randn(2, 12, 6),), more=more, traced={0: 'batch', 1: 'length'})


def recurrents():
    for name, kind in ('lstm', nn.LSTM), ('gru', nn.GRU):
        yield lambda name=name, kind=kind: recurrent(name, kind, length=12)
        yield lambda name=name, kind=kind: traced(name + '_traced', kind)
        yield lambda name=name, kind=kind: traced(name + '_traced_bidirectional', kind, bidirectional=True)
    for length in 1, 2, 33:
        yield lambda length=length: recurrent(f'lstm_length{length}', nn.LSTM, length=length)


class Cond(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(4, 6), nn.Linear(4, 6)

    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda x: torch.relu(self.up(x)), lambda x: self.down(x).sin() - x.mean(), (x,))


def cond():
    return Case('cond_parameters', Cond(), (torch.rand(3, 4),), more={'negative': (-torch.rand(3, 4),)})


class While(nn.Module):
    def __init__(self):
        super().__init__()
        self.step = nn.Linear(4, 4)

    def forward(self, x, times):
        from torch._higher_order_ops.while_loop import while_loop
        return while_loop(lambda i, x: i < times, lambda i, x: (i + 1, torch.tanh(self.step(x)) + x), (torch.zeros((), dtype=torch.int64), x))


def while_parameters():
    more = {f'times{n}': (torch.randn(3, 4), torch.tensor(n)) for n in (0, 1, 12)}
    return Case('while_parameters', While(), (torch.randn(3, 4), torch.tensor(5)), more=more)


class BatchNorm(nn.Module):
    "In training mode: a run changes the statistics, and the count of runs."

    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 6, 3), nn.BatchNorm2d(6)

    def forward(self, x):
        return F.relu(self.norm(self.conv(x)), inplace=True)


def batchnorm_train():
    x = [(torch.randn(4, 3, 8, 8) * (n + 1) + n,) for n in range(4)]
    return steps('batchnorm_train', BatchNorm().train(), x[0], x[1:])


class Autocast(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(16, 24), nn.Linear(24, 16)

    def forward(self, x):
        with torch.autocast('cpu', dtype=torch.bfloat16):
            y = self.down(F.gelu(self.up(x)))
        return (y.float() + x).sum(-1)


def autocast_region():
    return Case('autocast_region', Autocast(), (torch.randn(8, 16),), more={'seed1': (torch.randn(8, 16),)}, float64=False)


class Checkpointed(nn.Module):
    "The layers' activations would be computed again in the backward pass."

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Sequential(nn.Linear(16, 24), nn.GELU(), nn.Linear(24, 16)) for _ in range(2))

    def forward(self, x):
        from torch.utils.checkpoint import checkpoint
        for layer in self.layers:
            x = x + checkpoint(layer, x, use_reentrant=False)
        return x


def checkpointed():
    return Case('checkpointed', Checkpointed(), (torch.randn(8, 16),), more={'seed1': (torch.randn(8, 16),)})


class DecodeStep(nn.Module):
    "Attention of one token over a cache in buffers, which the step extends."

    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(16, 48), nn.Linear(16, 16)
        for name in 'keys', 'values':
            self.register_buffer(name, torch.zeros(1, 2, 8, 8))

    def forward(self, x, position):
        q, k, v = (t.view(1, 1, 2, 8).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
        self.keys.index_copy_(2, position, k)
        self.values.index_copy_(2, position, v)
        y = F.scaled_dot_product_attention(q, self.keys, self.values, torch.arange(8) <= position.unsqueeze(-1))
        return self.out(y.transpose(1, 2).reshape(1, 1, 16))


def decode_step():
    xs = [(torch.randn(1, 1, 16), torch.tensor([n])) for n in range(3)]
    return steps('decode_step', DecodeStep(), (torch.randn(1, 1, 16), torch.tensor([0])), xs)


def steps(name, module, example, inputs):
    "Runs over one state: step N begins with what step N-1 has left."
    more, before, running = {}, {}, copy.deepcopy(module)
    with torch.no_grad():
        for n, args in enumerate(inputs):
            before[f'step{n}'] = {k: t.clone() for k, t in running.named_buffers()}
            more[f'step{n}'] = args
            running(*args)
    return Case(name, module, example, more=more, before=before, training=module.training, onnx=False)  # ONNX has no state


CASES = (gpt2_tiny_dynamic, llama_tiny, llama_tiny_bf16, gpt2_tiny_loss, llama_tiny_loss, mlp_loss, *recurrents(), cond, while_parameters, batchnorm_train,
         autocast_region, checkpointed, decode_step)
