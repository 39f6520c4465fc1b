package comm

import (
	"encoding/binary"
	"hash/fnv"
	"os"
	"slices"
)

// Over is a list of mesh axes, and how the plans use the collectives over them.
type Over struct {
	Axes   []string
	Beside bool // other work runs beside some of them
}

// minCTAs is how many thread blocks NCCL gives a large collective beside which nothing runs. Its own choice is
// smaller, to leave multiprocessors to others.
const minCTAs = 32

// firstConfig is the first version of NCCL that takes a least number of blocks.
const firstConfig = 21700

// maxCTAs is the most blocks that a version of NCCL has, which is also its default. It takes no least number
// without a largest.
func maxCTAs(version int) int {
	if version < 22500 {
		return 32
	}
	return 64
}

// channelVariables are those by which NCCL's user chooses the number of blocks. The first two go before what NCCL is
// told, the others do not always: where any is set, it is told nothing.
var channelVariables = []string{"NCCL_MIN_CTAS", "NCCL_MAX_CTAS", "NCCL_MIN_NCHANNELS", "NCCL_MAX_NCHANNELS", "NCCL_MIN_NRINGS", "NCCL_MAX_NRINGS"}

// wishSize is that of a wish.
const wishSize = 8

// wish is what this rank says of the communicator over some axes: its host, where the communicator may take
// minCTAs blocks for all that this rank knows, else zeros.
func wish(over Over, version int, look environment) (w [wishSize]byte) {
	set := func(name string) bool { _, ok := look(name); return ok }
	if !over.Beside && version >= firstConfig && !slices.ContainsFunc(channelVariables, set) {
		binary.LittleEndian.PutUint64(w[:], host())
	}
	return w
}

// leastCTAs is how many blocks a communicator gets at least, from the wishes of its ranks; 0 leaves it to
// NCCL. It is the same on all ranks, as it must be, and minCTAs only on one host: between hosts the network
// decides how many are good.
func leastCTAs(wishes [][wishSize]byte) int {
	first := wishes[0]
	if first == [wishSize]byte{} || slices.ContainsFunc(wishes, func(w [wishSize]byte) bool { return w != first }) {
		return 0
	}
	return minCTAs
}

// host is a number of this host, as far as one can tell hosts apart; 0 where one cannot.
func host() uint64 {
	name, err := os.Hostname()
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return 0
	}
	h := fnv.New64a()
	h.Write([]byte(name + "\n"))
	h.Write(boot)
	return h.Sum64()
}
