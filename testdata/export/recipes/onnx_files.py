"""One model as ONNX by both exporters of PyTorch:  python3 onnx_files.py FOLDER

    weft compile FOLDER/bert_dynamo.onnx --target sm_90a -o bert.weft
"""
import sys
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch.export import Dim
from transformers import BertConfig, BertModel


class LastHidden(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids, attention_mask):
        return self.model(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state


def main(folder):
    torch.manual_seed(0)
    config = BertConfig(vocab_size=128, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
                        max_position_embeddings=64, initializer_range=0.1)
    model = LastHidden(BertModel(config)).eval()
    ids = torch.randint(128, (2, 8))
    args = ids, torch.ones_like(ids)
    batch, length = Dim('batch', min=1, max=16), Dim('length', min=2, max=64)
    dims = {'input_ids': {0: batch, 1: length}, 'attention_mask': {0: batch, 1: length}}
    # Through torch.export, with the same dims:
    torch.onnx.export(model, args, folder / 'bert_dynamo.onnx', dynamo=True, dynamic_shapes=dims, verbose=False)
    # The older exporter traces one run, and names dims in another form:
    axes = {'input_ids': {0: 'batch', 1: 'length'}, 'attention_mask': {0: 'batch', 1: 'length'}}
    torch.onnx.export(model, args, folder / 'bert_traced.onnx', dynamo=False, dynamic_axes=axes, opset_version=17,
                      input_names=['input_ids', 'attention_mask'], output_names=['hidden'])
    ids = torch.randint(128, (3, 11))
    mask = torch.ones_like(ids)
    mask[1, 7:] = 0
    with torch.no_grad():
        tensors = {'in.0': ids, 'in.1': mask, 'out.0': model(ids, mask)}
    for name in 'bert_dynamo', 'bert_traced':
        save_file(tensors, folder / f'{name}.safetensors')


if __name__ == '__main__':
    main(Path(sys.argv[1]))
