"""What torch.export and its relatives say to models that they refuse, and how each is made right:  python3 refused.py"""
import torch
from torch import nn
from torch.export import Dim, export


class Branch(nn.Module):
    def forward(self, x):
        return x + 1 if x.sum() > 0 else x - 1


class BranchByCond(nn.Module):
    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda x: x + 1, lambda x: x - 1, (x,))


class Fixed(nn.Module):
    def forward(self, x):
        return x.reshape(2, 8)


class FixedByInput(nn.Module):
    def forward(self, x):
        return x.reshape(x.shape[0], 8)


class Sum(nn.Module):
    def forward(self, x, y):
        return x + y


def llama():
    from transformers import LlamaConfig, LlamaForCausalLM
    return LlamaForCausalLM(LlamaConfig(vocab_size=64, hidden_size=16, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2)).eval()


def attempt(what, module, args, dims=None):
    try:
        export(module, args, dynamic_shapes=dims, strict=False)
        print(f'{what}: exported')
    except Exception as e:
        text = ' '.join(str(e).split())
        print(f'{what}: {type(e).__name__}: {text[:230]}')


def main():
    x, one = torch.randn(2, 8), torch.randn(1, 8)
    batch, other = Dim('batch', min=1, max=64), Dim('other', min=1, max=64)
    attempt('a branch on data', Branch(), (x,))
    attempt('  the same by torch.cond', BranchByCond(), (x,))
    attempt('a size that the code fixes', Fixed(), (x,), ({0: batch},))
    attempt('  the same by the input\'s size', FixedByInput(), (x,), ({0: batch},))
    attempt('two names for one size', Sum(), (x, x.clone()), ({0: batch}, {0: other}))
    attempt('  the same by one name', Sum(), (x, x.clone()), ({0: batch}, {0: batch}))
    attempt('a symbolic dim with an example of size 1', FixedByInput(), (one,), ({0: batch},))
    attempt('  the same with an example of size 2', FixedByInput(), (x,), ({0: batch},))
    attempt('an input without dims', Sum(), (x, x.clone()), {'x': {0: batch}})
    attempt('  the same with all inputs', Sum(), (x, x.clone()), {'x': {0: batch}, 'y': {0: batch}})
    attempt('a transformers model as it is', llama(), (torch.ones(2, 4, dtype=torch.long),))


if __name__ == '__main__':
    main()
