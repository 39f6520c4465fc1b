#!/bin/sh
# Runs all recipes, compiles what they export, and compares on the emulator:  run.sh FOLDER [PYTHON [WEFT]]
set -eu
folder=$1 python=${2:-python3} weft=${3:-build/weft}
here=$(dirname "$0")
mkdir -p "$folder"
for recipe in language_model static_cache vision onnx_files speech; do
	"$python" -W ignore "$here/$recipe.py" "$folder"
done

compare() {
	file=$1 name=$2
	shift 2
	"$weft" run "$folder/$file" --device emu --inputs "$folder/$name.safetensors" --expect "$folder/$name.safetensors" "$@"
}
for name in llama resnet18 mobilenetv3 hubert; do compare $name.pt2 $name; done
for name in bert_dynamo bert_traced; do compare $name.onnx $name; done
compare llama_bf16.pt2 llama_bf16 --atol 0.05
"$weft" compile prefill="$folder/prefill.pt2" decode="$folder/decode.pt2" --target sm_80 -o "$folder/chat.weft"
compare chat.weft decode --entry decode --before prefill="$folder/prefill.safetensors"
