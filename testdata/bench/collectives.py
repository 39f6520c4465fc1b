"""Programs of collectives for a mesh of ranks, to be measured beside torch.distributed.

collectives.py FOLDER RANKS                     writes the programs
collectives.py --given KIND_BYTES FILE          writes what one is given, zeros, and prints the option of weft bench that FILE is for
collectives.py --table RESULTS                  prints what multi.sh measured
collectives.py --steps                          the options of weft bench: as many steps as PyTorch takes

FOLDER/KIND_BYTES.weft each: several collectives of one size, of different inputs, one after the other. BYTES is the size of
the whole tensor in bfloat16: what all_reduce sums, all_gather gives and reduce_scatter takes. all_reduce sums states where they
lie, as PyTorch does; the others write elsewhere.
"""
import json
import os
import struct
import sys

WARMUP, STEPS = 50, 100  # of both sides
SIZES = [1 << 10, 16 << 10, 256 << 10, 4 << 20, 64 << 20, 1 << 30]


def count(size):
    "How many collectives of a size a program has."
    return 16 if size <= 4 << 20 else 4 if size <= 64 << 20 else 1


def program(kind, size, ranks):
    whole, share, n = size // 2, size // 2 // ranks, count(size)
    operand, result = {'all_reduce': (whole, whole), 'all_gather': (share, whole), 'reduce_scatter': (whole, share)}[kind]
    divided = {'all_reduce': '', 'all_gather': f' of [{whole}@x]', 'reduce_scatter': ''}[kind]
    parts = {'all_reduce': '', 'all_gather': '', 'reduce_scatter': f' of [{whole}@x]'}[kind]
    at = '@' if kind == 'all_reduce' else ''
    inputs = ', '.join(f'%x{i} {at}"x{i}": bf16[{operand}]{divided}' for i in range(n))
    body = '\n'.join(f'  %y{i}: bf16[{result}] = {kind}(%x{i}) {{combine = add, axes = ["x"], size = {ranks}}}' for i in range(n))
    outputs = ', '.join(f'%y{i} @"x{i}"' if at else f'%y{i} "y{i}"{parts}' for i in range(n))
    states = ''.join(f'state @"x{i}": bf16[{operand}] buffer\n' for i in range(n)) if at else ''
    return f'mesh x={ranks}\ndim "rank.x" in 0..{ranks - 1}\n{states}entry forward({inputs}) {{\n{body}\n  return {outputs}\n}}\n'


def main(folder, ranks):
    os.makedirs(folder, exist_ok=True)
    for kind in ('all_reduce', 'all_gather', 'reduce_scatter'):
        for size in SIZES:
            with open(os.path.join(folder, f'{kind}_{size}.weft'), 'w') as f:
                f.write(program(kind, size, ranks))


def given(name, path):
    "Writes global tensors of zeros in bfloat16, as safetensors, and says what they are."
    kind, size = name.rsplit('_', 1)
    n, size = count(int(size)), int(size)
    tensor, option = ('x', '--weights') if kind == 'all_reduce' else ('in.', '--inputs')
    header = {f'{tensor}{i}': {'dtype': 'BF16', 'shape': [size // 2], 'data_offsets': [i * size, (i + 1) * size]} for i in range(n)}
    text = json.dumps(header).encode()
    text += b' ' * (-len(text) % 8)
    with open(path, 'wb') as f:
        f.write(struct.pack('<Q', len(text)) + text)
        f.truncate(8 + len(text) + n * size)
    print(option)


def table(results):
    "weft's time by collective beside PyTorch's, eager and captured in a graph."
    print('| collective | bytes | weft us | torch us | torch in a graph us | torch / weft | graph / weft |')
    print('|---|---|---|---|---|---|---|')
    with open(os.path.join(results, 'comm.torch.jsonl')) as f:
        rows = [json.loads(line) for line in f if line.startswith('{')]
    clocks = set()
    for row in sorted(rows, key=lambda r: (r['collective'], r['bytes'])):
        try:
            with open(os.path.join(results, f'comm.{row["collective"]}_{row["bytes"]}.json')) as f:
                report = json.load(f)
            weft = report['step']['median_ms'] * 1e3 / count(row['bytes'])
            clocks.add(report['clock'])
        except (OSError, ValueError, KeyError):
            continue
        eager, graph = row['eager_us'], row['graph_us']
        print(f'| {row["collective"]} | {row["bytes"]} | {weft:.2f} | {eager} | {graph} | {eager / weft:.2f} | {graph / weft:.2f} |')
    print(f'PyTorch by device events, weft by {" and ".join(sorted(clocks))}')


if __name__ == '__main__':
    if sys.argv[1] == '--given':
        given(sys.argv[2], sys.argv[3])
    elif sys.argv[1] == '--steps':
        print(f'--warmup {WARMUP} --steps {STEPS}')
    elif sys.argv[1] == '--table':
        table(sys.argv[2])
    else:
        main(sys.argv[1], int(sys.argv[2]))
