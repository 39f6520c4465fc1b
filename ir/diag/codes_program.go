package diag

var programCodes = []Info{}
