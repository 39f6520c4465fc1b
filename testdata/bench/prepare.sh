#!/bin/sh
# Compiles what gpu.sh measures, on a machine with Go, llc and no GPU:
#
#	prepare.sh FOLDER [MODELS]
#
# FOLDER/kernels/NAME.weft             the programs of this folder
# FOLDER/agree/NAME/FORMAT.weft, io*   the models of testdata/models, with their references
# FOLDER/programs/NAME/program.weft, io*  the programs of testdata/programs in all their schedules, with inputs
# FOLDER/expected/...                  what the emulator computes for these two
# FOLDER/models/NAME.weft, NAME.*      MODELS/NAME/model.pt2 or model.json.zip (see models.py), with random weights where
#                                      the file has none, and the file itself for PyTorch
#
# WEFT names the weft to compile with, TARGET the GPU (sm_90a).
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
[ $# -ge 1 ] || { echo "usage: prepare.sh FOLDER [MODELS]" >&2; exit 2; }
mkdir -p "$1/kernels" "$1/agree" "$1/models" "$1/programs"
out=$(cd "$1" && pwd)
models=${2:-}
weft=${WEFT:-$root/build/weft}
target=${TARGET:-sm_90a}
failed=0

# compile FILE ARTIFACT [FLAG...]
compile() {
	file=$1 artifact=$2
	shift 2
	if ! "$weft" compile "$file" --target "$target" -o "$artifact" "$@" 2>"$artifact.log"; then
		echo "not compiled: $file: $(head -n 1 "$artifact.log")" >&2
		failed=$((failed + 1))
	fi
	[ -s "$artifact.log" ] || rm -f "$artifact.log"
}

for file in "$here"/*.weft; do
	compile "$file" "$out/kernels/$(basename "$file")"
done
for folder in "$root"/testdata/models/*/; do
	name=$(basename "$folder")
	mkdir -p "$out/agree/$name"
	for format in pt2 onnx; do
		[ ! -f "$folder/model.$format" ] || compile "$folder/model.$format" "$out/agree/$name/$format.weft"
	done
	cp "$folder"/io*.safetensors "$out/agree/$name/"
done
(cd "$root" && go test . -count=1 -run '^TestRecordCorpus$' -record "$out/programs" >"$out/programs.log" 2>&1) || {
	echo "the programs could not be written: $(head -n 1 "$out/programs.log")" >&2
	failed=$((failed + 1))
}
for part in programs agree; do
	"$weft" conformance "$out/$part" --device emu --outputs "$out/expected/$part" >"$out/$part.emu.txt" 2>&1 || true
	tail -n 1 "$out/$part.emu.txt" >&2
done
if [ -n "$models" ]; then
	for file in "$models"/*/model.pt2 "$models"/*/model.json.zip; do
		[ -f "$file" ] || continue
		name=$(basename "$(dirname "$file")")
		case $file in
		*.json.zip) compile "$file" "$out/models/$name.weft" --weights random:1 ;;
		*) compile "$file" "$out/models/$name.weft" ;;
		esac
		cp "$file" "$out/models/$name.${file##*/model.}"
	done
fi
echo "$out: $(ls "$out/kernels"/*.weft | wc -l) kernels, $(ls "$out"/agree/*/*.weft | wc -l) artifacts to compare, $failed not compiled" >&2
