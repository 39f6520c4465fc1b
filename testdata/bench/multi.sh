#!/bin/sh
# Measures on a machine with several GPUs, a driver, NCCL and a Python that has PyTorch; no Go and no llc:
#
#	multi.sh FOLDER RESULTS RANKS [PART...]
#
# FOLDER is what multi_prepare.sh made for RANKS; RESULTS gets JSON files and logs. PART is agree, faults, comm or tp; or
# virtual, which runs the ranks of agree on one GPU.
# WEFT names the weft built with CUDA (build/weft-cuda), PYTHON the Python (python3), LENGTHS the tokens of tp (1024 8192),
# MODES PyTorch's modes of tp (compile).
set -u
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
[ $# -ge 3 ] || { echo "usage: multi.sh FOLDER RESULTS RANKS [agree|faults|comm|tp...]" >&2; exit 2; }
folder=$(cd "$1" && pwd) || exit 2
mkdir -p "$2" || exit 2
results=$(cd "$2" && pwd)
ranks=$3
shift 3
parts=" ${*:-agree faults comm tp} "
weft=${WEFT:-$root/build/weft-cuda}
python=${PYTHON:-python3}
export NCCL_NVLS_ENABLE=0
[ -n "${WEFT_NCCL:-}" ] || WEFT_NCCL=$("$python" -c 'import nvidia.nccl, os; print(os.path.join(list(nvidia.nccl.__path__)[0], "lib/libnccl.so.2"))' 2>/dev/null) || WEFT_NCCL=
[ -z "$WEFT_NCCL" ] || export WEFT_NCCL

torch() {
	"$python" -m torch.distributed.run --standalone --nproc-per-node "$ranks" "$here/torch_ranks.py" "$@"
}

# step FILE: the median of a step in a JSON file of weft bench.
step() {
	"$python" -c 'import json, sys; print(json.load(open(sys.argv[1]))["step"]["median_ms"])' "$1" 2>/dev/null || echo -
}

# Every model on GPUs, one process for all and one process a rank, against PyTorch's outputs.
case $parts in *" agree "*)
	for artifact in "$folder"/agree/*.weft; do
		name=$(basename "$artifact" .weft)
		io=$folder/agree/${name%%.*}.io.safetensors
		for how in "" "--nproc $ranks"; do
			# shellcheck disable=SC2086
			timeout 90 "$weft" run "$artifact" --device cuda $how --inputs "$io" --expect "$io" >"$results/agree.txt" 2>"$results/agree.log"
			echo "agree $name ${how:-one process}: status $?, $(grep -c ' ok$' "$results/agree.txt") ok, $(grep -c DIFFERS "$results/agree.txt") differ $(head -n 1 "$results/agree.log" | cut -c1-160)"
		done
	done
esac

case $parts in *" virtual "*)
	for artifact in "$folder"/agree/*.weft; do
		name=$(basename "$artifact" .weft)
		io=$folder/agree/${name%%.*}.io.safetensors
		timeout 90 "$weft" run "$artifact" --device cuda --virtual-ranks --inputs "$io" --expect "$io" >"$results/virtual.txt" 2>"$results/virtual.log"
		echo "virtual $name of $ranks: status $?, $(grep -c ' ok$' "$results/virtual.txt") ok, $(grep -c DIFFERS "$results/virtual.txt") differ $(head -n 1 "$results/virtual.log" | cut -c1-160)"
	done
esac

# fault SIGNAL ARTIFACT: a rank that a signal hits in the middle of a long run.
fault() {
	began=$(date +%s)
	"$weft" run "$2" --device cuda --nproc "$ranks" --steps 100000000 --comm-timeout 5s --inputs "$io" >"$results/fault.$1.txt" 2>&1 &
	launcher=$!
	sleep 20
	victim=$(pgrep -P "$launcher" | tail -n 1)
	hit=$(date +%s)
	kill "-$1" "$victim"
	wait "$launcher"
	status=$?
	echo "fault $1 to a rank: exit status $status, $(($(date +%s) - hit)) s after the signal, $((hit - began)) s after the start"
	kill -KILL "$victim" 2>/dev/null
	grep -E 'error|note' "$results/fault.$1.txt" | cut -c1-260 | head -n 6
}

case $parts in *" faults "*)
	artifact=$folder/agree/llama_tiny.tp.weft # it has collectives
	io=$folder/agree/llama_tiny.io.safetensors
	fault KILL "$artifact"
	fault STOP "$artifact"
	began=$(date +%s)
	WEFT_DEBUG_LEAVE_OUT=1:3 timeout 60 "$weft" run "$artifact" --device cuda --nproc "$ranks" --comm-timeout 5s --inputs "$io" >"$results/fault.skip.txt" 2>&1
	echo "fault: rank 1 leaves out collective 3: exit status $?, $(($(date +%s) - began)) s"
	grep -E 'error|note' "$results/fault.skip.txt" | cut -c1-260 | head -n 6
esac

case $parts in *" comm "*)
	torch comm >"$results/comm.torch.jsonl" 2>"$results/comm.torch.log" || tail -n 3 "$results/comm.torch.log"
	for artifact in "$folder"/comm/*.weft; do
		name=$(basename "$artifact" .weft)
		given=$("$python" "$here/collectives.py" --given "$name" "$results/given.safetensors")
		# shellcheck disable=SC2046
		timeout 90 "$weft" bench "$artifact" --device cuda "$given" "$results/given.safetensors" $("$python" "$here/collectives.py" --steps) --json >"$results/comm.$name.json" 2>"$results/comm.$name.log" ||
			head -n 1 "$results/comm.$name.log"
	done
	rm -f "$results/given.safetensors"
	"$python" "$here/collectives.py" --table "$results"
esac

case $parts in *" tp "*)
	for length in ${LENGTHS:-1024 8192}; do
		for artifact in "$folder"/tp/*_"$length".*.weft; do
			name=$(basename "$artifact" .weft)
			timeout 120 "$weft" bench "$artifact" --device cuda --json >"$results/tp.$name.json" 2>"$results/tp.$name.log" || head -n 1 "$results/tp.$name.log"
			echo "tp $name: $(step "$results/tp.$name.json") ms"
		done
		# shellcheck disable=SC2086
		torch tp "$length" ${MODES:-compile} 2>"$results/tp.torch.$length.log" | tee "$results/tp.torch.$length.jsonl"
	done
esac
