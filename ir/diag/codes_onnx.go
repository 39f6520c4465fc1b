package diag

// Codes of package frontend/onnx.
const (
	NotONNX            Code = "W1200"
	ONNXDamaged        Code = "W1201"
	ONNXLimit          Code = "W1202"
	ONNXVersion        Code = "W1203"
	ONNXTensor         Code = "W1204"
	ONNXExternal       Code = "W1205"
	ONNXGraph          Code = "W1206"
	ONNXType           Code = "W1207"
	ONNXAttribute      Code = "W1208"
	ONNXOperator       Code = "W1209"
	ONNXFunction       Code = "W1210"
	ONNXDataDependent  Code = "W1220"
	ONNXForm           Code = "W1221"
	ONNXElementType    Code = "W1222"
	ONNXContradiction  Code = "W1230"
	ONNXDimsTakenEqual Code = "W1231"
	ONNXDimTakenLarge  Code = "W1232"
)

var onnxCodes = []Info{
	{NotONNX, BadInput, "not an ONNX model", "The file is not an ONNX ModelProto, or has no graph. An .onnx file is written by torch.onnx.export, onnx.save and the like; a data file beside it (.onnx_data) is not the model."},
	{ONNXDamaged, BadInput, "damaged ONNX file", "The protobuf encoding is cut off or malformed at the byte that the message names. The file was probably not copied or downloaded whole: compare its size with the original."},
	{ONNXLimit, BadInput, "ONNX model beyond a limit", "The model nests, repeats or expands more than weft accepts from a file: messages, inlined functions, unrolled loops or the size of shape expressions. Such limits protect against crafted files; a real model that meets one is worth a report."},
	{ONNXVersion, Unsupported, "ONNX version not supported", "weft reads opsets 7 to 28 of the default domain and IR versions 3 to 14. Convert the model with onnx.version_converter, or export it again for one of these opsets."},
	{ONNXTensor, BadInput, "malformed ONNX tensor", "A tensor of the file has an unknown element type, a negative or too large dim, or another number of elements than its shape demands. Export the model again."},
	{ONNXExternal, BadInput, "external data of an ONNX tensor", "A tensor keeps its data in another file, and that file is missing, too short, or lies outside the model's folder. Keep the data files that the exporter wrote beside the model; absolute paths and `..` are refused."},
	{ONNXGraph, BadInput, "inconsistent ONNX graph", "A value is used that nothing defines, is defined twice, or depends on itself. onnx.checker shows the same; export the model again."},
	{ONNXType, BadInput, "unusable declaration of an ONNX value", "An input of the graph has no type, a negative dim or a size beyond all memory. Declare it with an element type and a shape; dims that vary are named (dim_param) or left open."},
	{ONNXAttribute, BadInput, "wrong attribute of an ONNX operator", "An attribute is missing, has another type than the operator takes, or a value that it does not know."},
	{ONNXOperator, BadInput, "wrong use of an ONNX operator", "An operator has a wrong number of inputs or outputs, or operands whose shapes or types it does not take."},
	{ONNXFunction, BadInput, "wrong function of an ONNX model", "A function of the model calls itself, is defined twice, or is called with arguments that it does not have."},
	{ONNXDataDependent, Unsupported, "shape depends on data", "The shape of a result depends on the contents of a tensor that is only known at run time. weft compiles shapes made of constants and named dims. Often the exporter can be told the size (a constant, or a dynamic dim), or the operator moved out of the model."},
	{ONNXForm, Unsupported, "form of an ONNX operator not supported", "The operator is supported, but not with this combination of attributes, inputs or types. The message says what is not."},
	{ONNXElementType, Unsupported, "ONNX element type not supported", "The model uses an element type that weft has no form of (float6, opaque and sparse types)."},
	{ONNXContradiction, OK, "declared shape is wrong", "The file declares a shape or element type of a value that its operators contradict. What follows from the operators is used. Exporters do this at times; the results are not affected."},
	{ONNXDimsTakenEqual, OK, "dims taken to be equal", "The file gives two dims different names (or none), but an operator combines tensors where they must be equal unless one is 1. They are taken to be equal. Name dims alike in the exporter to say so; a dim that is always 1 should be exported as 1."},
	{ONNXDimTakenLarge, OK, "open dim taken to be larger than 1", "An operator drops the dims of size 1 without saying which (Squeeze without axes), and a dim is open. It is taken to be larger than 1 and stays. Export the operator with axes, or give the dim a size."},
}
