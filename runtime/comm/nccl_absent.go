//go:build !cgo || !linux

package comm

import "errors"

// ncclLibrary is a loaded libnccl; there is none in this build.
type ncclLibrary struct{}

// ncclComm is a communicator of NCCL.
type ncclComm struct{}

// ncclWindow is memory that the ranks of a communicator reach at each other.
type ncclWindow *struct{}

var errNoNCCL = errors.New("this weft was built without cgo; use the cuda build: sh runtime/cuda/build.sh")

func loadNCCL(string) (*ncclLibrary, error) { return nil, errNoNCCL }

func (*ncclLibrary) version() (int, error)               { return 0, errNoNCCL }
func (*ncclLibrary) uniqueID() ([ncclIDSize]byte, error) { return [ncclIDSize]byte{}, errNoNCCL }
func (*ncclLibrary) init(int, [ncclIDSize]byte, int, int, int) (ncclComm, error) {
	return ncclComm{}, errNoNCCL
}
func (*ncclLibrary) destroy(ncclComm) error    { return errNoNCCL }
func (*ncclLibrary) abort(ncclComm) error      { return errNoNCCL }
func (*ncclLibrary) asyncError(ncclComm) error { return errNoNCCL }
func (*ncclLibrary) allReduce(_, _ uint64, _ int64, _ ncclType, _ ncclOp, _ ncclComm, _ uintptr) error {
	return errNoNCCL
}
func (*ncclLibrary) reduceScatter(_, _ uint64, _ int64, _ ncclType, _ ncclOp, _ ncclComm, _ uintptr) error {
	return errNoNCCL
}
func (*ncclLibrary) allGather(_, _ uint64, _ int64, _ ncclType, _ ncclComm, _ uintptr) error {
	return errNoNCCL
}
func (*ncclLibrary) send(uint64, int64, int, ncclComm, uintptr) error { return errNoNCCL }
func (*ncclLibrary) recv(uint64, int64, int, ncclComm, uintptr) error { return errNoNCCL }
func (*ncclLibrary) grouped(func() error) error                       { return errNoNCCL }
func (*ncclLibrary) hasWindows() bool                                 { return false }
func (*ncclLibrary) memAlloc(int64) (uint64, error)                   { return 0, errNoNCCL }
func (*ncclLibrary) memFree(uint64) error                             { return errNoNCCL }
func (*ncclLibrary) window(ncclComm, uint64, int64) (ncclWindow, error) {
	return nil, errNoNCCL
}
func (*ncclLibrary) windowEnd(ncclComm, ncclWindow) error { return errNoNCCL }
