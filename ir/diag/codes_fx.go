package diag

var fxCodes = []Info{}
