package diag

var runCodes = []Info{}
