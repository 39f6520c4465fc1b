package diag

// Codes of package frontend/fx.
const (
	FXArchive     Code = "W1100"
	FXMalformed   Code = "W1101"
	FXVersion     Code = "W1102"
	FXUnknown     Code = "W1103"
	FXName        Code = "W1104"
	FXExpression  Code = "W1105"
	FXArgument    Code = "W1106"
	FXType        Code = "W1107"
	FXWeights     Code = "W1108"
	FXSignature   Code = "W1109"
	FXAssertion   Code = "W1110"
	FXDimUnbound  Code = "W1111"
	FXOverlapping Code = "W1112"
	FXPickle      Code = "W1113"
)

var fxCodes = []Info{
	{FXArchive, BadInput, "not a torch.export archive", "The file is no archive that torch.export.save writes: it is not a zip, or has no models/NAME.json. Files of torch.save, torch.jit.save and AOTInductor are other formats: export with torch.export.export and torch.export.save."},
	{FXMalformed, BadInput, "malformed model JSON", "The graph inside the archive is not the JSON that torch.export writes: it is cut off, or a value has another type than the schema says. The place is a byte offset in the JSON. Export the model again."},
	{FXVersion, Unsupported, "unknown schema version", "The archive was written with a major schema version that weft does not know (it knows 5 to 8, of torch 2.4 and newer). Export with a torch from 2.4 to 2.15, or use a newer weft."},
	{FXUnknown, BadInput, "field of a newer schema", "The archive was written by a newer torch and holds fields that weft does not know. They are ignored; if results differ, export with torch 2.15 or use a newer weft."},
	{FXName, BadInput, "undefined or repeated name", "The graph uses a value that no earlier node defines, or defines one twice: the graph is cyclic, out of order or damaged. Export the model again."},
	{FXExpression, BadInput, "unreadable size expression", "A symbolic size uses a function that weft does not know, or is malformed. weft reads sums, products, powers, floor divisions, remainders, minimum and maximum of symbols and integers."},
	{FXArgument, BadInput, "wrong argument of an operator", "An argument is missing, has the wrong type or a value out of range. The graph was damaged or edited: export the model again."},
	{FXType, BadInput, "result differs from what the exporter recorded", "The archive records the shape and element type of every value; what weft derives for this node is something else. The file was edited, or weft has the operator wrong: please report it then."},
	{FXWeights, BadInput, "weights do not fit the graph", "A parameter, buffer or constant of the graph has no data in the archive, or data of another size or type. The archive is damaged or was put together by hand: export the model again."},
	{FXSignature, BadInput, "malformed signature", "The signature of the exported program does not fit its graph: an input or output is missing or of an unknown kind. Export the model again."},
	{FXAssertion, BadInput, "runtime assertion left out", "The exported program checks a value that is only known when it runs. weft leaves the check out; the result is undefined where the check would have failed."},
	{FXDimUnbound, Unsupported, "size that depends on data", "A size is known only after part of the model has run (nonzero, boolean indexing, item). weft needs all sizes from the inputs: replace it by masking or padding to a fixed size."},
	{FXOverlapping, Unsupported, "write through overlapping memory", "The model writes in place to a view whose elements share memory (expand, unfold). The result is not defined; clone the view first."},
	{FXPickle, BadInput, "unreadable pickle", "Archives of releases before torch 2.8 keep weights in files of torch.save (data.pkl and storages), and later ones keep some constants so. This one is damaged, or holds something that torch.save does not write for tensors. weft runs no code of pickles. Export the model again."},
}
