#!/usr/bin/env python3
"""Runs the matrix products on the first GPU.

Usage: tensor.py DIR [OUT]. DIR holds what `go test -run MatrixProduct -write-hardware DIR` wrote; the digests go to
OUT/h200_tensor.txt and the results to OUT/NAME.gpu.
"""
import ctypes, hashlib, pathlib, sys

folder, out = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[-1])
cuda = ctypes.CDLL("libcuda.so.1")


def call(name, *arguments):
    status = getattr(cuda, name)(*arguments)
    if status:
        sys.exit(f"{name}: error {status}")


device, context, module, function = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
call("cuInit", 0)
call("cuDeviceGet", ctypes.byref(device), 0)
call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
call("cuCtxSetCurrent", context)
call("cuModuleLoadData", ctypes.byref(module), (folder / "tensor.ptx").read_bytes() + b"\0")
digests = []
for name in ["mma_bf16", "mma_f16", "mma_tf32", "mma_s8"]:
    pointers = []
    for part in "abc":
        data = (folder / f"{name}.{part}").read_bytes()
        pointers.append(ctypes.c_uint64())
        call("cuMemAlloc_v2", ctypes.byref(pointers[-1]), ctypes.c_size_t(len(data)))
        call("cuMemcpyHtoD_v2", pointers[-1], data, ctypes.c_size_t(len(data)))
    pointers.append(ctypes.c_uint64())
    call("cuMemAlloc_v2", ctypes.byref(pointers[3]), ctypes.c_size_t(len(data)))
    arguments = (ctypes.c_void_p * 4)(*[ctypes.cast(ctypes.pointer(p), ctypes.c_void_p) for p in pointers])
    call("cuModuleGetFunction", ctypes.byref(function), module, name.encode())
    call("cuLaunchKernel", function, len(data) // 512, 1, 1, 32, 1, 1, 0, None, arguments, None)
    call("cuCtxSynchronize")
    result = ctypes.create_string_buffer(len(data))
    call("cuMemcpyDtoH_v2", result, pointers[3], ctypes.c_size_t(len(data)))
    digests.append(f"{hashlib.sha256(result.raw).hexdigest()} {name}\n")
    (out / f"{name}.gpu").write_bytes(result.raw)
(out / "h200_tensor.txt").write_text("".join(digests))
