#!/bin/sh
# Makes the checked-in PTX of every .ll file with the flags that weft uses.
set -e
cd "$(dirname "$0")"
for f in *.ll; do
	llc-19 -march=nvptx64 -mcpu=sm_80 -O3 -nvptx-fma-level=0 -fp-contract=off "$f" -o "${f%.ll}.ptx"
done
