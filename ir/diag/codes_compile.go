package diag

var compileCodes = []Info{}
