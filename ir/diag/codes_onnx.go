package diag

var onnxCodes = []Info{}
