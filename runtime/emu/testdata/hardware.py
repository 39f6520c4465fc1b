#!/usr/bin/env python3
"""Runs the instruction comparison on the first GPU.

Usage: hardware.py DIR. DIR holds what `go test -run Hardware -write-hardware DIR` wrote; the digests go to DIR/h200.txt
and the results to DIR/result.N.
"""
import ctypes, hashlib, pathlib, sys

folder = pathlib.Path(sys.argv[1])
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
call("cuModuleLoadData", ctypes.byref(module), (folder / "hardware.ptx").read_bytes() + b"\0")
pointers = []
for n in range(4):
    p = ctypes.c_uint64()
    call("cuMemAlloc_v2", ctypes.byref(p), ctypes.c_size_t(1 << 20))
    pointers.append(p)
for n in range(3):
    data = (folder / f"hardware.{n}").read_bytes()
    call("cuMemcpyHtoD_v2", pointers[n], data, ctypes.c_size_t(len(data)))
arguments = (ctypes.c_void_p * 4)(*[ctypes.cast(ctypes.pointer(p), ctypes.c_void_p) for p in pointers])
digests, results = [], []
for i, name in enumerate((folder / "hardware.names").read_text().splitlines()):
    call("cuModuleGetFunction", ctypes.byref(function), module, f"k{i}".encode())
    call("cuLaunchKernel", function, len(data) // 8 // 128, 1, 1, 128, 1, 1, 0, None, arguments, None)
    call("cuCtxSynchronize")
    result = ctypes.create_string_buffer(len(data))
    call("cuMemcpyDtoH_v2", result, pointers[3], ctypes.c_size_t(len(data)))
    digests.append(hashlib.sha256(result.raw).hexdigest()[:16] + " " + name + "\n")
    results.append(result.raw)
(folder / "h200.txt").write_text("".join(digests))
half = len(results) // 2
(folder / "result.0").write_bytes(b"".join(results[:half]))
(folder / "result.1").write_bytes(b"".join(results[half:]))
