package diag

// Codes of package frontend/weights.
const (
	FileSuffix      Code = "W1000"
	FileTruncated   Code = "W1001"
	BadSafetensors  Code = "W1002"
	BadNumpy        Code = "W1003"
	BadZip          Code = "W1004"
	FileElementType Code = "W1005"
	FileDuplicate   Code = "W1006"
	FileTooLarge    Code = "W1007"
	BadShards       Code = "W1008"
	WeightMissing   Code = "W1009"
	WeightType      Code = "W1010"
	WeightStorage   Code = "W1011"
	WeightsOption   Code = "W1012"
)

var fileCodes = []Info{
	{FileSuffix, Usage, "unknown tensor file suffix", "Tensor files are chosen by suffix: .safetensors, .npz, or .npy for a single tensor. Rename or convert the file."},
	{FileTruncated, BadInput, "file is empty or truncated", "The file ends before the data that its header promises. It was probably not copied or downloaded whole: compare its size with the original."},
	{BadSafetensors, BadInput, "malformed safetensors file", "The header of the safetensors file is not valid: wrong JSON, offsets that overlap, leave holes or run past the end, or a byte count that does not fit shape and type. Write the file again with the safetensors library."},
	{BadNumpy, BadInput, "malformed .npy data", "The header of the .npy file (or of a member of an .npz file) is not one that numpy writes, or the data do not have the size that it promises. Save the array again with numpy.save."},
	{BadZip, BadInput, "malformed zip archive", "The zip archive (.npz, .pt2) is damaged or crafted: members overlap, have impossible sizes or offsets, unsafe names, wrong checksums or an unknown compression. Save it again with the program that made it."},
	{FileElementType, Unsupported, "element type not supported by the file format", "The file holds an element type that weft does not read from this format, or the tensor has one that the format cannot hold. safetensors holds all float8 types and bfloat16; .npy holds strings and complex128."},
	{FileDuplicate, BadInput, "duplicate tensor or member name", "Two tensors or archive members have the same name, so that it is not defined which one is meant. Write the file again with distinct names."},
	{FileTooLarge, BadInput, "size beyond the limit", "A header, a member or a tensor is larger than weft accepts from a file of this kind; this protects against crafted files that expand without bound. Compressed archives may expand to 1 GiB: store larger ones uncompressed."},
	{BadShards, BadInput, "sharded checkpoint is incomplete", "The index file of a sharded checkpoint does not agree with the shards: a shard is missing, or a tensor is not in the shard that the index names. Fetch the checkpoint again as a whole."},
	{WeightMissing, BadInput, "weight is missing", "The weights that were given do not contain a tensor that the program needs. The message lists the nearest names."},
	{WeightType, BadInput, "weight has the wrong type", "A weight has another element type or shape than the program declares. Check that the weights belong to this model."},
	{WeightStorage, BadInput, "weight does not fit its storage", "The shape, strides and offset of a stored tensor reach outside its storage, or the expanded tensor would be unreasonably large. The archive is damaged: export the model again."},
	{WeightsOption, Usage, "unknown source of weights", "Weights come from a .safetensors or .npz file, from a directory with a checkpoint, or are random:SEED with a decimal seed."},
}
