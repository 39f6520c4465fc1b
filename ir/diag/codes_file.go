package diag

var fileCodes = []Info{}
