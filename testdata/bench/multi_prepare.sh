#!/bin/sh
# Compiles what multi.sh measures on RANKS GPUs, on a machine with Go, llc and no GPU:
#
#	multi_prepare.sh FOLDER RANKS [MODELS]
#
# FOLDER/agree/NAME.STRATEGY.weft  models of testdata/models, divided, with their references NAME.io.safetensors
# FOLDER/comm/KIND_BYTES.weft      collectives (collectives.py)
# FOLDER/tp/llama3_1b_LENGTH.HOW.weft  of MODELS (models.py), by tp, tp+sp, tp without overlap, and on one GPU
#
# WEFT names the weft to compile with, TARGET the GPU (sm_90a). ONLY=agree leaves out all but the first.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
[ $# -ge 2 ] || { echo "usage: multi_prepare.sh FOLDER RANKS [MODELS]" >&2; exit 2; }
mkdir -p "$1/agree" "$1/comm" "$1/tp"
out=$(cd "$1" && pwd)
ranks=$2
models=${3:-}
weft=${WEFT:-$root/build/weft}
target=${TARGET:-sm_90a}

agree() {
	"$weft" compile "$root/testdata/models/$1/model.pt2" --target "$target" --mesh "$2" --parallel "$3" -o "$out/agree/$1.$4.weft"
	cp "$root/testdata/models/$1/io.safetensors" "$out/agree/$1.io.safetensors"
}

for model in gpt2_tiny llama_tiny mixtral_tiny mobilenet_v3_small mlp_joint llama_tiny_joint; do
	agree $model dp="$ranks" dp:ddp ddp
	agree $model dp="$ranks" dp:fsdp fsdp
	agree $model tp="$ranks" tp:tp tp
	agree $model tp="$ranks" tp:tp+sp tp_sp
	agree $model dp=$((ranks / 2)),tp=2 dp:fsdp,tp:tp fsdp_tp
done
agree mixtral_tiny ep="$ranks" ep:ep ep
[ "${ONLY:-}" != agree ] || exit 0
python3 "$here/collectives.py" "$out/programs" "$ranks"
for file in "$out"/programs/*.weft; do
	"$weft" compile "$file" --target "$target" --weights none -o "$out/comm/$(basename "$file")"
done
rm -r "$out/programs"
[ -n "$models" ] || exit 0
for length in 1024 8192; do
	for how in tp:tp tp:tp+sp one; do
		flags="--mesh tp=$ranks --parallel $how"
		[ "$how" != one ] || flags=
		# shellcheck disable=SC2086
		"$weft" compile "$models/llama3_1b_$length/model.json.zip" --target "$target" --weights random:1 $flags \
			-o "$out/tp/llama3_1b_$length.$(echo "$how" | tr ':+' '__').weft"
	done
	"$weft" compile "$models/llama3_1b_$length/model.json.zip" --target "$target" --weights random:1 --mesh tp="$ranks" --parallel tp:tp+sp \
		--disable-pass overlap -o "$out/tp/llama3_1b_$length.tp_tp_sp_in_order.weft"
done
