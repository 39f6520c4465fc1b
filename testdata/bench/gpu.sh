#!/bin/sh
# Measures on a machine with a GPU, a driver and a Python that has PyTorch; no Go and no llc:
#
#	gpu.sh FOLDER RESULTS [PART...]
#
# FOLDER is what prepare.sh made; RESULTS gets a JSON file and a log for each measurement. PART is bits, agree, kernels,
# models, or the name of one kernel or model; without any, all run in that order. At the end, and whenever it is ended by a signal,
# a table of what was measured is printed.
#
# WEFT    the weft built with CUDA (build/weft-cuda)      DEVICE  cuda (or emu, to try the script)
# PYTHON  the Python with PyTorch (python3)               STEPS   times to take (50)
# BUDGET  seconds for everything (540)                    MODEL_BUDGET  seconds for PyTorch's part of all models (300)
set -u
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
[ $# -ge 2 ] || { echo "usage: gpu.sh FOLDER RESULTS [bits|agree|kernels|models|NAME...]" >&2; exit 2; }
folder=$(cd "$1" && pwd) || exit 2
mkdir -p "$2" || exit 2
results=$(cd "$2" && pwd)
shift 2
parts=${*:-bits agree kernels models}
weft=${WEFT:-$root/build/weft-cuda}
python=${PYTHON:-python3}
device=${DEVICE:-cuda}
steps=${STEPS:-50}
budget=${BUDGET:-540}
model_budget=${MODEL_BUDGET:-300}
began=$(date +%s)
# Inductor's own cache lies in the results: a second run starts where the first one ended.
TORCHINDUCTOR_CACHE_DIR=${TORCHINDUCTOR_CACHE_DIR:-$results/inductor}
export TORCHINDUCTOR_CACHE_DIR

left() { echo $((budget - $(date +%s) + began)); }
wanted() {
	for part in $parts; do
		[ "$part" != "$1" ] && [ "$part" != "$2" ] || return 0
	done
	return 1
}

finish() {
	trap - EXIT INT TERM HUP
	"$python" "$here/table.py" "$results"
	exit "$1"
}
trap 'finish 0' EXIT
trap 'finish 130' INT TERM HUP

# measure NAME SECONDS ARGUMENT...: one weft bench with PyTorch in at most so many seconds; without PyTorch where that fails.
measure() {
	name=$1 seconds=$2
	shift 2
	if [ "$seconds" -lt 15 ]; then
		echo "$name: left out, $seconds s are left" >&2
		return
	fi
	echo "$name: at most $seconds s" >&2
	# The process has its own limit a little later, in case it hangs in the driver.
	timeout -k 5 $((seconds + 45)) "$weft" bench "$@" --device "$device" --steps "$steps" --kernels --against torch --python "$python" \
		--budget "${seconds}s" --json >"$results/$name.json" 2>"$results/$name.log"
	status=$?
	if [ $status -gt 1 ] && [ "$(left)" -gt 10 ]; then
		echo "$name: status $status: $(head -n 1 "$results/$name.log"); again without PyTorch" >&2
		artifact=$1
		timeout -k 5 60 "$weft" bench "$artifact" --device "$device" --steps "$steps" --kernels --json >"$results/$name.json" 2>>"$results/$name.log" ||
			echo "$name: status $?: $(tail -n 1 "$results/$name.log")" >&2
	fi
}

"$weft" doctor >"$results/doctor.txt" 2>&1
"$weft" version >"$results/version.txt" 2>&1

# What the emulator computed, bit for bit: the programs with kernels of both kinds of target, the models with their own.
for case in programs:sm_80 programs:sm_90a agree:; do
	name=${case%%:*} target=${case#*:}
	wanted bits "bits.$name" && [ -d "$folder/expected/$name" ] && [ "$(left)" -gt 10 ] || continue
	result=$results/bits.$name${target:+.$target}
	timeout -k 5 "$(left)" "$weft" conformance "$folder/$name" --device "$device" ${target:+--target "$target"} --expect "$folder/expected/$name" \
		--exact --json >"$result.json" 2>"$result.log"
	echo "bits of $name${target:+ for $target}: status $?: $(head -n 1 "$result.log")" >&2
done

for artifact in "$folder"/agree/*/*.weft; do
	[ -f "$artifact" ] || continue
	name=$(basename "$(dirname "$artifact")")
	wanted agree "$name" || continue
	for io in "$(dirname "$artifact")"/io*.safetensors; do
		[ "$(left)" -gt 5 ] || break 2
		result=$results/agree.$name.$(basename "$artifact" .weft).$(basename "$io" .safetensors)
		timeout -k 5 60 "$weft" run "$artifact" --device "$device" --inputs "$io" --expect "$io" --json >"$result.json" 2>"$result.log"
		echo $? >"$result.status"
	done
done

for artifact in "$folder"/kernels/*.weft; do
	[ -f "$artifact" ] || continue
	name=$(basename "$artifact" .weft)
	wanted kernels "$name" || continue
	modes=eager,default
	case $name in gemm*) modes=eager,default,max-autotune ;; esac
	seconds=$(left)
	[ "$seconds" -le 60 ] || seconds=60
	measure "kernel.$name" "$seconds" "$artifact" --model "$here/torch_kernels.py:$name" --modes $modes
done

count=$(ls "$folder"/models/*.weft 2>/dev/null | wc -l)
models_began=$(date +%s)
for artifact in "$folder"/models/*.weft; do
	[ -f "$artifact" ] || continue
	name=$(basename "$artifact" .weft)
	if wanted models "$name"; then
		model=$folder/models/$name.pt2
		[ -f "$model" ] || model=$folder/models/$name.json.zip
		# What the models before did not use, shared by those that are left.
		seconds=$(((model_budget - $(date +%s) + models_began) / count))
		[ "$seconds" -le "$(left)" ] || seconds=$(left)
		measure "model.$name" "$seconds" "$artifact" --model "$model"
	fi
	count=$((count - 1))
done
