package diag

// Codes of compiling that other packages raise by name.
const (
	NoAssembler  Code = "W4010"
	StatesDiffer Code = "W4011"
)

var compileCodes = []Info{
	{"W4001", BadInput, "llc not found", "Compiling to PTX needs llc of LLVM 19. `weft doctor` shows what was found and the command that installs it; WEFT_LLC names another llc."},
	{"W4002", BadInput, "unsupported llc version", "PTX is promised to be the same bytes for LLVM 19 only. Install it, or set WEFT_LLC to use the llc that you have; its version then is part of the artifact's key."},
	{"W4003", Unsupported, "no kernel for an operator", "The compiled path has no kernel for this operator yet. The float64 evaluator runs it: `weft run --device reference`."},
	{"W4004", Unsupported, "no kernel for an element type", "Kernels compute with bool, 8- to 64-bit integers, f16, bf16, f32 and f64. Convert in the model, or run it with `weft run --device reference`."},
	{NoAssembler, BadInput, "ptxas not found", "--code cubin and --code both need NVIDIA's assembler. `weft doctor` shows what was found and the command that installs it; WEFT_PTXAS names another one. A plain compile (--code ptx) does without: the driver assembles at load."},
	{StatesDiffer, BadInput, "files do not share a state", "Files that become entries of one artifact (prefill=A decode=B) share their parameters and buffers by name. A state has another type or other values in one of them: the files are of different models or checkpoints, or a buffer such as a cache was written to before the export. Export them from one instance of the model."},
}
