package diag

var planCodes = []Info{}
