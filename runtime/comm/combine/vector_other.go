//go:build !amd64

package combine

// vectors gives no twins: everything runs portably.
func vectors() twins { return twins{} }
