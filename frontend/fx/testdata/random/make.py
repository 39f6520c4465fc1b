"""Exports model.pt2, a module in training mode that draws random numbers. Needs PyTorch."""

import os

import torch


class Random(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.dropout = torch.nn.Dropout(0.25)

    def forward(self, x):
        return (
            self.dropout(x),
            torch.rand_like(x),
            torch.randn(40, 25),
            torch.randint(3, 10, (1000,)),
            torch.bernoulli(torch.full((1000,), 0.3)),
            torch.randperm(50),
            torch.multinomial(torch.ones(4, 10).cumsum(1), 10),
            torch.multinomial(torch.ones(4, 10).cumsum(1), 500, replacement=True),
            torch.zeros(1000).uniform_(2, 3),
            torch.zeros(1000).normal_(5, 2),
            torch.nn.functional.scaled_dot_product_attention(*[torch.ones(2, 4, 30, 8)] * 3, dropout_p=0.5),
        )


folder = os.path.dirname(os.path.abspath(__file__))
program = torch.export.export(Random().train(), (torch.ones(40, 25),))
for name, form in (("model.pt2", program), ("core.pt2", program.run_decompositions())):
    for node in form.graph.nodes:
        node.meta.pop("stack_trace", None)  # it has the folder of this file
    torch.export.save(form, os.path.join(folder, name))
