//go:build cgo && linux

package comm

/*
#cgo LDFLAGS: -ldl
#include <dlfcn.h>
#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

// NCCL's interface, as its version 2 has it.
typedef struct { char bytes[128]; } weft_id;

// ncclConfig_t as 2.17 has it. Later versions append fields, and take their defaults for what is beyond size.
typedef struct {
	size_t size;
	unsigned magic, version;
	int blocking, cgaClusterSize, minCTAs, maxCTAs;
	const char *netName;
} weft_config;

typedef struct {
	int (*GetVersion)(int *);
	int (*GetUniqueId)(weft_id *);
	int (*CommInitRank)(void **, int, weft_id, int);
	int (*CommInitRankConfig)(void **, int, weft_id, int, weft_config *); // since 2.14; may be NULL
	int (*CommDestroy)(void *);
	int (*CommAbort)(void *);
	int (*CommGetAsyncError)(void *, int *);
	const char *(*GetErrorString)(int);
	const char *(*GetLastError)(void *); // since 2.13; may be NULL
	int (*AllReduce)(const void *, void *, size_t, int, int, void *, void *);
	int (*ReduceScatter)(const void *, void *, size_t, int, int, void *, void *);
	int (*AllGather)(const void *, void *, size_t, int, void *, void *);
	int (*Send)(const void *, size_t, int, int, void *, void *);
	int (*Recv)(void *, size_t, int, int, void *, void *);
	int (*GroupStart)(void);
	int (*GroupEnd)(void);
	int (*MemAlloc)(void **, size_t); // since 2.19; may be NULL
	int (*MemFree)(void *); // the same
	int (*CommWindowRegister)(void *, void *, size_t, void **, int); // since 2.27; may be NULL
	int (*CommWindowDeregister)(void *, void *); // the same
} weft_nccl;

// weft_nccl_open loads the library. It returns NULL, or why it could not.
static const char *weft_nccl_open(const char *file, weft_nccl *n) {
	void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
	if (library == NULL) {
		return dlerror();
	}
	const struct { void **slot; const char *name; int needed; } list[] = {
		{(void **)&n->GetVersion, "ncclGetVersion", 1},
		{(void **)&n->GetUniqueId, "ncclGetUniqueId", 1},
		{(void **)&n->CommInitRank, "ncclCommInitRank", 1},
		{(void **)&n->CommInitRankConfig, "ncclCommInitRankConfig", 0},
		{(void **)&n->CommDestroy, "ncclCommDestroy", 1},
		{(void **)&n->CommAbort, "ncclCommAbort", 1},
		{(void **)&n->CommGetAsyncError, "ncclCommGetAsyncError", 1},
		{(void **)&n->GetErrorString, "ncclGetErrorString", 1},
		{(void **)&n->GetLastError, "ncclGetLastError", 0},
		{(void **)&n->AllReduce, "ncclAllReduce", 1},
		{(void **)&n->ReduceScatter, "ncclReduceScatter", 1},
		{(void **)&n->AllGather, "ncclAllGather", 1},
		{(void **)&n->Send, "ncclSend", 1},
		{(void **)&n->Recv, "ncclRecv", 1},
		{(void **)&n->GroupStart, "ncclGroupStart", 1},
		{(void **)&n->GroupEnd, "ncclGroupEnd", 1},
		{(void **)&n->MemAlloc, "ncclMemAlloc", 0},
		{(void **)&n->MemFree, "ncclMemFree", 0},
		{(void **)&n->CommWindowRegister, "ncclCommWindowRegister", 0},
		{(void **)&n->CommWindowDeregister, "ncclCommWindowDeregister", 0},
	};
	for (size_t i = 0; i < sizeof list / sizeof list[0]; i++) {
		*list[i].slot = dlsym(library, list[i].name);
		if (*list[i].slot == NULL && list[i].needed) {
			return dlerror();
		}
	}
	return NULL;
}

static int weft_version(weft_nccl *n, int *v) { return n->GetVersion(v); }
static int weft_id_new(weft_nccl *n, void *id) { return n->GetUniqueId(id); }
static int weft_init(weft_nccl *n, void **c, int size, void *id, int rank) { return n->CommInitRank(c, size, *(weft_id *)id, rank); }
static int weft_init_config(weft_nccl *n, void **c, int size, void *id, int rank, int least, int most) {
	weft_config config = {sizeof config, 0xcafebeef, 21700, INT_MIN, INT_MIN, least, most, NULL}; // INT_MIN: the default
	return n->CommInitRankConfig(c, size, *(weft_id *)id, rank, &config);
}
static int weft_destroy(weft_nccl *n, void *c) { return n->CommDestroy(c); }
static int weft_abort(weft_nccl *n, void *c) { return n->CommAbort(c); }
static int weft_async(weft_nccl *n, void *c, int *e) { return n->CommGetAsyncError(c, e); }
static const char *weft_error(weft_nccl *n, int e) { return n->GetErrorString(e); }
static const char *weft_last(weft_nccl *n) { return n->GetLastError == NULL ? "" : n->GetLastError(NULL); }
static int weft_all_reduce(weft_nccl *n, uint64_t from, uint64_t to, size_t count, int type, int op, void *c, uintptr_t s) {
	return n->AllReduce((void *)from, (void *)to, count, type, op, c, (void *)s);
}
static int weft_reduce_scatter(weft_nccl *n, uint64_t from, uint64_t to, size_t count, int type, int op, void *c, uintptr_t s) {
	return n->ReduceScatter((void *)from, (void *)to, count, type, op, c, (void *)s);
}
static int weft_all_gather(weft_nccl *n, uint64_t from, uint64_t to, size_t count, int type, void *c, uintptr_t s) {
	return n->AllGather((void *)from, (void *)to, count, type, c, (void *)s);
}
static int weft_send(weft_nccl *n, uint64_t from, size_t count, int peer, void *c, uintptr_t s) {
	return n->Send((void *)from, count, 1, peer, c, (void *)s); // 1: uint8
}
static int weft_recv(weft_nccl *n, uint64_t to, size_t count, int peer, void *c, uintptr_t s) {
	return n->Recv((void *)to, count, 1, peer, c, (void *)s);
}
static int weft_group_start(weft_nccl *n) { return n->GroupStart(); }
static int weft_group_end(weft_nccl *n) { return n->GroupEnd(); }
static int weft_mem_alloc(weft_nccl *n, uint64_t *at, size_t size) {
	void *p = NULL;
	int result = n->MemAlloc(&p, size);
	*at = (uint64_t)p;
	return result;
}
static int weft_mem_free(weft_nccl *n, uint64_t at) { return n->MemFree((void *)at); }
static int weft_window(weft_nccl *n, void *c, uint64_t at, size_t size, void **window) {
	return n->CommWindowRegister(c, (void *)at, size, window, 1); // 1: NCCL_WIN_COLL_SYMMETRIC
}
static int weft_window_end(weft_nccl *n, void *c, void *window) { return n->CommWindowDeregister(c, window); }
*/
import "C"

import (
	"errors"
	"fmt"
	"unsafe"
)

// ncclLibrary is a loaded libnccl.
type ncclLibrary struct{ table *C.weft_nccl }

// ncclComm is a communicator of NCCL: ncclComm_t.
type ncclComm unsafe.Pointer

// ncclWindow is memory that the ranks of a communicator reach at each other: ncclWindow_t.
type ncclWindow unsafe.Pointer

// loadNCCL loads the library of a name.
func loadNCCL(name string) (*ncclLibrary, error) {
	file := C.CString(name)
	defer C.free(unsafe.Pointer(file))
	table := (*C.weft_nccl)(C.calloc(1, C.sizeof_weft_nccl)) // for the life of the process
	if reason := C.weft_nccl_open(file, table); reason != nil {
		return nil, errors.New(C.GoString(reason))
	}
	return &ncclLibrary{table}, nil
}

func (l *ncclLibrary) check(call string, result C.int) error {
	if result == 0 || result == 7 { // ncclSuccess, ncclInProgress
		return nil
	}
	text := C.GoString(C.weft_error(l.table, result))
	if last := C.GoString(C.weft_last(l.table)); last != "" {
		text += ": " + last
	}
	return fmt.Errorf("%s: %s (%d)", call, text, int(result))
}

// version is NCCL's number: 22703 for 2.27.3.
func (l *ncclLibrary) version() (int, error) {
	var v C.int
	err := l.check("ncclGetVersion", C.weft_version(l.table, &v))
	return int(v), err
}

func (l *ncclLibrary) uniqueID() (id [ncclIDSize]byte, err error) {
	err = l.check("ncclGetUniqueId", C.weft_id_new(l.table, unsafe.Pointer(&id)))
	return id, err
}

// init makes a communicator. Its collectives get as many blocks as NCCL thinks, but at least so many of most
// that there are where that is not 0: then NCCL is 2.17 or later.
func (l *ncclLibrary) init(size int, id [ncclIDSize]byte, rank, least, most int) (ncclComm, error) {
	var c unsafe.Pointer
	if least > 0 && l.table.CommInitRankConfig != nil {
		err := l.check("ncclCommInitRankConfig", C.weft_init_config(l.table, &c, C.int(size), unsafe.Pointer(&id), C.int(rank), C.int(least), C.int(most)))
		return ncclComm(c), err
	}
	err := l.check("ncclCommInitRank", C.weft_init(l.table, &c, C.int(size), unsafe.Pointer(&id), C.int(rank)))
	return ncclComm(c), err
}

func (l *ncclLibrary) destroy(c ncclComm) error {
	return l.check("ncclCommDestroy", C.weft_destroy(l.table, unsafe.Pointer(c)))
}

func (l *ncclLibrary) abort(c ncclComm) error {
	return l.check("ncclCommAbort", C.weft_abort(l.table, unsafe.Pointer(c)))
}

// asyncError is the error of work that runs, or nil.
func (l *ncclLibrary) asyncError(c ncclComm) error {
	var e C.int
	if err := l.check("ncclCommGetAsyncError", C.weft_async(l.table, unsafe.Pointer(c), &e)); err != nil {
		return err
	}
	return l.check("NCCL", e)
}

func (l *ncclLibrary) allReduce(from, to uint64, count int64, dtype ncclType, op ncclOp, c ncclComm, stream uintptr) error {
	return l.check("ncclAllReduce", C.weft_all_reduce(l.table, C.uint64_t(from), C.uint64_t(to), C.size_t(count), C.int(dtype), C.int(op), unsafe.Pointer(c), C.uintptr_t(stream)))
}

func (l *ncclLibrary) reduceScatter(from, to uint64, count int64, dtype ncclType, op ncclOp, c ncclComm, stream uintptr) error {
	return l.check("ncclReduceScatter", C.weft_reduce_scatter(l.table, C.uint64_t(from), C.uint64_t(to), C.size_t(count), C.int(dtype), C.int(op), unsafe.Pointer(c), C.uintptr_t(stream)))
}

func (l *ncclLibrary) allGather(from, to uint64, count int64, dtype ncclType, c ncclComm, stream uintptr) error {
	return l.check("ncclAllGather", C.weft_all_gather(l.table, C.uint64_t(from), C.uint64_t(to), C.size_t(count), C.int(dtype), unsafe.Pointer(c), C.uintptr_t(stream)))
}

func (l *ncclLibrary) send(from uint64, count int64, peer int, c ncclComm, stream uintptr) error {
	return l.check("ncclSend", C.weft_send(l.table, C.uint64_t(from), C.size_t(count), C.int(peer), unsafe.Pointer(c), C.uintptr_t(stream)))
}

func (l *ncclLibrary) recv(to uint64, count int64, peer int, c ncclComm, stream uintptr) error {
	return l.check("ncclRecv", C.weft_recv(l.table, C.uint64_t(to), C.size_t(count), C.int(peer), unsafe.Pointer(c), C.uintptr_t(stream)))
}

// grouped runs calls that NCCL is to take as one.
func (l *ncclLibrary) grouped(calls func() error) error {
	if err := l.check("ncclGroupStart", C.weft_group_start(l.table)); err != nil {
		return err
	}
	err := calls()
	return errors.Join(err, l.check("ncclGroupEnd", C.weft_group_end(l.table)))
}

// hasWindows tells whether the library has the four calls that follow.
func (l *ncclLibrary) hasWindows() bool {
	t := l.table
	return t.MemAlloc != nil && t.MemFree != nil && t.CommWindowRegister != nil && t.CommWindowDeregister != nil
}

func (l *ncclLibrary) memAlloc(size int64) (uint64, error) {
	var at C.uint64_t
	err := l.check("ncclMemAlloc", C.weft_mem_alloc(l.table, &at, C.size_t(size)))
	return uint64(at), err
}

func (l *ncclLibrary) memFree(at uint64) error {
	return l.check("ncclMemFree", C.weft_mem_free(l.table, C.uint64_t(at)))
}

// window makes memory of memAlloc a window. All ranks of the communicator call it. It is nil where the communicator
// has none, as between GPUs that do not reach each other.
func (l *ncclLibrary) window(c ncclComm, at uint64, size int64) (ncclWindow, error) {
	var w unsafe.Pointer
	err := l.check("ncclCommWindowRegister", C.weft_window(l.table, unsafe.Pointer(c), C.uint64_t(at), C.size_t(size), &w))
	return ncclWindow(w), err
}

// windowEnd undoes window, on this rank.
func (l *ncclLibrary) windowEnd(c ncclComm, w ncclWindow) error {
	return l.check("ncclCommWindowDeregister", C.weft_window_end(l.table, unsafe.Pointer(c), unsafe.Pointer(w)))
}
