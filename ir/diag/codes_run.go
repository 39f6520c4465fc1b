package diag

// Codes of running a program or an artifact.
const (
	RunInputMissing Code = "W7000"
	RunInputUnknown Code = "W7001"
	RunInputType    Code = "W7002"
	RunInputShape   Code = "W7003"
	RunDimRange     Code = "W7004"
	RunDimUnknown   Code = "W7005"
	RunOperation    Code = "W7006"
	RunTooLarge     Code = "W7007"
	RunUnsupported  Code = "W7008"
)

// Codes of sessions on a device.
const (
	RunSize    Code = "W7020"
	RunTarget  Code = "W7021"
	RunWeights Code = "W7022"
	RunMemory  Code = "W7023"
	RunDevice  Code = "W7024"
	RunKernels Code = "W7025"
	RunState   Code = "W7026"
)

var runCodes = []Info{
	{RunInputMissing, BadInput, "input or state has no value", "The entry needs a value that was not given. The message lists the inputs with their types; `weft inspect` shows the whole signature."},
	{RunInputUnknown, BadInput, "no such input or entry", "A value was given for an input, or a run was asked of an entry, that the program does not have. The message lists those that it has."},
	{RunInputType, BadInput, "input has the wrong element type or rank", "Inputs are not converted: give them with the element type and the number of dims that the message names."},
	{RunInputShape, BadInput, "input has the wrong shape", "A dim of an input is not what the program declares, or one symbol would have two sizes. The message gives the declared type and where the symbol got its size."},
	{RunDimRange, BadInput, "dim is outside its declared range", "A symbolic dim was compiled for a range or a multiple that the input does not keep. Compile with another --dim to allow it."},
	{RunDimUnknown, BadInput, "size of a dim cannot be found", "A symbolic dim occurs in no input in a form that can be solved for it. Name the dim with --dim when compiling."},
	{RunOperation, RunFailed, "operation cannot run on these values", "With the sizes of this run an operation is not defined: a slice reaches outside, a reshape changes the number of elements, an index is taken of nothing. The place is that of the operation in the model."},
	{RunTooLarge, RunFailed, "value is too large", "With the sizes of this run a tensor would need more memory than weft gives to one value. Run with smaller inputs."},
	{RunUnsupported, Unsupported, "operation cannot be evaluated", "The reference evaluator has no meaning for this operation on this element type, such as rounding complex numbers."},
	{RunSize, RunFailed, "size is beyond what the kernels take", "With the sizes of this run a buffer, a grid or an argument of a kernel is negative or too large: kernels for dims with a small bound count in 32 bits. Run with smaller inputs, or compile with a --dim bound that covers them."},
	{RunTarget, BadInput, "artifact has no kernels for this device", "Kernels for sm_90a run on GPUs of compute capability 9.0 only, those for a plain sm_80 on 8.0 and all newer ones. The message lists the targets of the artifact. Compile with another --target to add one."},
	{RunWeights, BadInput, "weights do not fit the artifact", "The weights that were given lack states that the artifact needs, or have them with another element type or shape. The message lists all of them with what was expected. Check that they belong to this model."},
	{RunMemory, RunFailed, "device memory does not suffice", "The device, or the limit that was set, has not enough memory for the states, the scratch memory and the inputs and outputs of this run. `weft inspect` shows how much each needs. Run with smaller inputs or on a larger device."},
	{RunDevice, RunFailed, "device reports an error", "A kernel or a transfer failed while it ran. The message is the device's own; on the emulator it names kernel, thread and PTX instruction."},
	{RunKernels, RunFailed, "device does not load the kernels", "The driver or the emulator refuses the artifact's PTX. `weft doctor ARTIFACT` tells whether the driver is too old for it."},
	{RunState, BadInput, "state is not available", "The session does not keep a state of this name: it does not exist, no entry uses it, only the init entry needed it and it was freed after, or what init prepared from it would no longer fit. The message lists the states that there are; open a new session with other weights to replace one that init reads."},
}
