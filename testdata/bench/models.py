"""Writes graphs of full-size models in bfloat16, without weights: models.py FOLDER [NAME...]

FOLDER/NAME/model.json.zip each, exported on the meta device: nothing is downloaded and no memory is taken by weights.
Needs what testdata/export/requirements.txt lists."""

import os
import sys
import zipfile

import torch
import torchvision
import transformers as T
from torch._export.serde.serialize import serialize


class Output(torch.nn.Module):
    """A model of transformers as a function of tensors to one tensor."""

    def __init__(self, model, name, **options):
        super().__init__()
        self.m, self.name, self.options = model, name, options

    def forward(self, *inputs):
        return getattr(self.m(*inputs, **self.options), self.name)


def ids(*shape):
    return torch.zeros(shape, dtype=torch.long)


def images(count):
    return torch.zeros(count, 3, 224, 224, dtype=torch.bfloat16)


def llama3_1b():
    "The sizes of Llama 3.2 1B with weights of its own for the output."
    return Output(T.LlamaForCausalLM(T.LlamaConfig(hidden_size=2048, intermediate_size=8192, num_hidden_layers=16, num_attention_heads=32,
                                                   num_key_value_heads=8, vocab_size=128256, max_position_embeddings=8192)), "logits", use_cache=False)


MODELS = {
    "gpt2_124m": (lambda: Output(T.GPT2LMHeadModel(T.GPT2Config(resid_pdrop=0, embd_pdrop=0, attn_pdrop=0)), "logits", use_cache=False), lambda: (ids(8, 1024),)),
    "bert_base": (lambda: Output(T.BertModel(T.BertConfig()), "last_hidden_state"), lambda: (ids(8, 512),)),
    "vit_b": (lambda: Output(T.ViTForImageClassification(T.ViTConfig()), "logits"), lambda: (images(8),)),
    "llama3_1b_1024": (llama3_1b, lambda: (ids(1, 1024),)),
    "llama3_1b_8192": (llama3_1b, lambda: (ids(1, 8192),)),
    "resnet50": (lambda: torchvision.models.resnet50(), lambda: (images(32),)),
}


def write(folder, name):
    make, inputs = MODELS[name]
    with torch.device("meta"):
        model, args = make().bfloat16().eval(), inputs()
    program = torch.export.export(model, args, strict=False)
    os.makedirs(os.path.join(folder, name), exist_ok=True)
    with zipfile.ZipFile(os.path.join(folder, name, "model.json.zip"), "w", zipfile.ZIP_DEFLATED) as z:
        z.writestr(zipfile.ZipInfo("model.json"), serialize(program).exported_program, zipfile.ZIP_DEFLATED)
    print(name, len(program.graph.nodes), "nodes")


if __name__ == "__main__":
    for name in sys.argv[2:] or MODELS:
        write(sys.argv[1], name)
