package diag

var artifactCodes = []Info{}
