// A libnccl.so.2 that moves nothing: it writes what it is asked for to the file FAKE_NCCL_LOG, fails in the function
// FAKE_NCCL_FAIL (of the rank FAKE_NCCL_FAIL_RANK alone, where that is set), waits for ever in FAKE_NCCL_HANG, and reports FAKE_NCCL_ASYNC as the error of
// running work. FAKE_NCCL_VERSION is its version, 22703 without. FAKE_NCCL_MEMORY is the address of the memory that it gives, of any size;
// FAKE_NCCL_NO_WINDOW has it make none.
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct { char bytes[128]; } ncclUniqueId;
typedef struct { int rank, size; char id[16]; } comm;

static int called(comm *c, const char *name, const char *format, ...) {
	const char *file = getenv("FAKE_NCCL_LOG"), *fail = getenv("FAKE_NCCL_FAIL"), *hang = getenv("FAKE_NCCL_HANG");
	char line[512];
	int n = c == NULL ? 0 : snprintf(line, sizeof line, "%d/%d ", c->rank, c->size);
	n += snprintf(line + n, sizeof line - n, "%s", name);
	va_list arguments;
	va_start(arguments, format);
	n += vsnprintf(line + n, sizeof line - n, format, arguments);
	va_end(arguments);
	line[n++] = '\n';
	FILE *f = file == NULL ? NULL : fopen(file, "a");
	if (f != NULL) {
		fwrite(line, 1, n, f);
		fclose(f);
	}
	while (hang != NULL && strcmp(hang, name) == 0) {
		pause();
	}
	const char *rank = getenv("FAKE_NCCL_FAIL_RANK");
	return fail != NULL && strcmp(fail, name) == 0 && (rank == NULL || c == NULL || atoi(rank) == c->rank) ? 3 : 0;
}

int ncclGetVersion(int *version) {
	const char *text = getenv("FAKE_NCCL_VERSION");
	*version = text == NULL ? 22703 : atoi(text);
	return 0;
}
const char *ncclGetErrorString(int e) { return e == 6 ? "remote process exited" : "internal error"; }
const char *ncclGetLastError(void *c) { return "as the test wants"; }

int ncclGetUniqueId(ncclUniqueId *id) {
	memset(id, 0, sizeof *id);
	strcpy(id->bytes, "the id");
	return called(NULL, "ncclGetUniqueId", "");
}

int ncclCommInitRank(comm **out, int size, ncclUniqueId id, int rank) {
	comm *c = calloc(1, sizeof *c);
	c->rank = rank;
	c->size = size;
	memcpy(c->id, id.bytes, sizeof c->id);
	*out = c;
	return called(c, "ncclCommInitRank", " %s", c->id);
}

// The configuration as 2.27 has it, which takes that of older ones.
typedef struct {
	size_t size;
	unsigned magic, version;
	int blocking, cgaClusterSize, minCTAs, maxCTAs;
	const char *netName;
	int splitShare, trafficClass;
	const char *commName;
	int collnetEnable, CTAPolicy, shrinkShare, nvlsCTAs;
} config;

int ncclCommInitRankConfig(comm **out, int size, ncclUniqueId id, int rank, config *given) {
	config c = {.minCTAs = INT_MIN, .maxCTAs = INT_MIN};
	if (given->size < offsetof(config, splitShare) || given->magic != 0xcafebeef || given->version < 21700 || given->version > 22703) {
		return 4;
	}
	memcpy(&c, given, given->size < sizeof c ? given->size : sizeof c);
	if (c.blocking != INT_MIN || c.cgaClusterSize != INT_MIN || c.netName != NULL || c.minCTAs > c.maxCTAs) { // as NCCL refuses a least number alone
		return 4;
	}
	comm *made = calloc(1, sizeof *made);
	made->rank = rank;
	made->size = size;
	memcpy(made->id, id.bytes, sizeof made->id);
	*out = made;
	return called(made, "ncclCommInitRankConfig", " %s blocks %d..%d", made->id, c.minCTAs, c.maxCTAs);
}

int ncclCommDestroy(comm *c) { return called(c, "ncclCommDestroy", ""); }
int ncclCommAbort(comm *c) { return called(c, "ncclCommAbort", ""); }

int ncclCommGetAsyncError(comm *c, int *e) {
	const char *text = getenv("FAKE_NCCL_ASYNC");
	*e = text == NULL ? 0 : atoi(text);
	return 0;
}

int ncclAllReduce(void *from, void *to, size_t count, int type, int op, comm *c, void *stream) {
	return called(c, "ncclAllReduce", " %p %p count %zu type %d op %d stream %p", from, to, count, type, op, stream);
}
int ncclReduceScatter(void *from, void *to, size_t count, int type, int op, comm *c, void *stream) {
	return called(c, "ncclReduceScatter", " %p %p count %zu type %d op %d stream %p", from, to, count, type, op, stream);
}
int ncclAllGather(void *from, void *to, size_t count, int type, comm *c, void *stream) {
	return called(c, "ncclAllGather", " %p %p count %zu type %d stream %p", from, to, count, type, stream);
}
int ncclSend(void *from, size_t count, int type, int peer, comm *c, void *stream) {
	return called(c, "ncclSend", " %p count %zu type %d to %d stream %p", from, count, type, peer, stream);
}
int ncclRecv(void *to, size_t count, int type, int peer, comm *c, void *stream) {
	return called(c, "ncclRecv", " %p count %zu type %d from %d stream %p", to, count, type, peer, stream);
}
int ncclGroupStart(void) { return called(NULL, "ncclGroupStart", ""); }
int ncclGroupEnd(void) { return called(NULL, "ncclGroupEnd", ""); }

int ncclMemAlloc(void **at, size_t size) {
	const char *memory = getenv("FAKE_NCCL_MEMORY");
	*at = memory == NULL ? NULL : (void *)strtoull(memory, NULL, 0);
	int e = called(NULL, "ncclMemAlloc", " %zu", size);
	return *at == NULL ? 1 : e;
}
int ncclMemFree(void *at) { return called(NULL, "ncclMemFree", " %p", at); }
int ncclCommWindowRegister(comm *c, void *at, size_t size, void **window, int flags) {
	*window = getenv("FAKE_NCCL_NO_WINDOW") == NULL ? c : NULL;
	return called(c, "ncclCommWindowRegister", " %p %zu flags %d", at, size, flags);
}
int ncclCommWindowDeregister(comm *c, void *window) { return called(c, "ncclCommWindowDeregister", c == window ? "" : " of another"); }
