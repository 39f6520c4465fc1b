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
}
