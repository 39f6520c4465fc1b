#!/bin/sh
# Builds the variant of weft that runs on NVIDIA GPUs. It needs Go, a C compiler and pip, but
# neither a GPU nor a driver, and the binary starts on machines without them.
#
#   sh runtime/cuda/build.sh                    builds build/weft-cuda
#   sh runtime/cuda/build.sh vet ./runtime/...  runs that go command (build, vet, test, run, list)
#                                               with the tag and the flags of this variant
#   sh runtime/cuda/build.sh env                prints the flags, for eval by another shell
#
# Everything that it makes lies in build/cuda.
set -eu

root=$(CDPATH='' cd -- "$(dirname -- "$0")/../.." && pwd)
made=$root/build/cuda

headers=$made/headers/nvidia/cuda_runtime/include

cd "$root"

if [ ! -f "$headers/cuda.h" ]; then
	PIP_ROOT_USER_ACTION=ignore "${PYTHON:-python3}" -m pip install --quiet --disable-pip-version-check --no-deps --only-binary=:all: \
		--platform manylinux2014_x86_64 --target "$made/headers.$$" --require-hashes -r runtime/cuda/headers.txt >&2
	rm -rf "$made/headers"
	mv "$made/headers.$$" "$made/headers"
fi

CGO_ENABLED=1
CGO_CFLAGS="-O2 -g \"-I$headers\""
CGO_LDFLAGS="\"-L$made/lib\""
export CGO_ENABLED CGO_CFLAGS CGO_LDFLAGS

go run ./runtime/cuda/libcuda -o "$made/lib"

if [ $# -eq 0 ]; then
	set -- build -o build/weft-cuda ./cmd/weft
fi
command=$1
shift
case $command in
env)
	printf "export CGO_ENABLED='%s' CGO_CFLAGS='%s' CGO_LDFLAGS='%s'\n" "$CGO_ENABLED" "$CGO_CFLAGS" "$CGO_LDFLAGS"
	;;
*)
	exec go "$command" -tags cuda -trimpath "$@"
	;;
esac
