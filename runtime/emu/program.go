package emu

import "weft/codegen/ptx"

// opcode selects what the executor does with an instruction.
type opcode uint8

const (
	opLane32    opcode = iota // d32 = f32(a32, b32, c32)
	opLane64                  // d64 = f64(a64, b64, c64)
	opWide                    // d64 = wide(a32, b32, c64)
	opNarrow                  // d32 = narrow(a64)
	opShift                   // d64 = shift(a64, b32)
	opCompare32               // predicate d (and e) = compare32(a32, b32), combined with c
	opCompare64
	opSelect32 // d32 = c ? a32 : b32
	opSelect64
	opSet32         // d32 = predicate a ? imm : 0
	opPredicate     // predicate d = logic on predicates a, b
	opSlowInsert    // bfi
	opPack          // mov.b32 d, {a, b}: 16 bits each; mov.b64 d, {a, b}: 32 bits each, or 4×16
	opUnpack        // mov.b32 {a, b}, d …
	opLoadParameter // every lane gets the same bytes
	opLoad
	opStore
	opAtomic
	opShuffle
	opVote
	opMatch
	opReduce
	opActiveMask
	opBranch   // uniform
	opBranchIf // by the guard
	opBranchTable
	opReconverge
	opBarrier
	opBarrierReduce
	opExit
	opTrap
	opSpecial // extra.run does it
	opNothing
)

// noSlot marks an absent operand.
const noSlot = -1

// instruction is a decoded instruction. Operands are slots of the register files: lanes32,
// lanes64 or predicates, as the opcode says.
type instruction struct {
	op         opcode
	guard      int32 // predicate slot, noSlot if unconditional
	guardFlip  uint32
	d, e       int32
	a, b, c    int32
	f32        lane32
	f64        lane64
	wide       laneWide
	narrow     laneNarrow
	shift      laneShift
	compare32  compare32
	compare64  compare64
	target     int32 // branches: index into program
	reconverge int32 // where the ways of a divergent branch meet, -1 for never
	exitFirst  bool  // branches: lanes that fall through leave at once, so they go first
	imm        uint64
	access     *memoryAccess
	extra      *extra
	source     *ptx.Instruction
}

// extra holds operands of rare instructions.
type extra struct {
	combine string // and, or, xor of setp
	flip    uint32 // of the combined predicate
	logic   func(a, b uint32) uint32
	mode    string
	slots   []int32
	width   int // of an element, in bits
	targets []int32
	insert  func(a, b uint64, c, d uint32) uint64
	count   int32 // slot of a barrier's thread count
	reduce  func(a, b uint32) uint32
	run     func(w *worker, wp *warp, in *instruction, mask uint32) *Fault
}

// memoryAccess describes a load, store or atomic.
type memoryAccess struct {
	space     ptx.Space
	size      int // bytes of one element: 1, 2, 4, 8
	vector    int // elements: 1, 2, 4
	signed    bool
	slots     []int32 // of the data, one an element; noSlot for a sink
	wide      bool    // data registers are 64 bits
	width     int     // bits of a data register
	base      int32   // address slot, noSlot for an absolute address
	baseWide  bool    // the address register is 64 bits
	offset    uint64
	pointees  pointees // regions that the address may lie in
	index     int      // among the kernel's accesses
	atomic    func(old, b, c uint64) uint64
	operand   int32 // atomics: value slot
	operand2  int32 // compare-and-swap: new value
	discarded bool  // red: no result
}

// special is a special register that a kernel reads, and the slot that holds it.
type special struct {
	base string // "%tid"
	axis int    // 0 to 2 for x, y, z, else -1
	slot int32
}

// kernel is a decoded entry.
type kernel struct {
	name            string
	module          *module
	code            []instruction
	parameters      []parameter
	paramBytes      int
	registers32     int // slots of the program's registers, which come first
	registers64     int
	slots32         int
	slots64         int
	predicates      int
	constants32     []constant32
	constants64     []constant64
	sharedAddresses []sharedAddress
	specials        []special
	accesses        []*memoryAccess
	staticShared    int
	dynamicAlign    int  // of extern shared memory, 0 if there is none
	sequential      bool // results depend on the order of blocks: they run one by one
	async           bool // has asynchronous copies
	proxy           bool // has products of warpgroups or copies of boxes, which read shared memory later
	bulk            bool // has mbarriers, or copies of boxes
	maxThreads      [3]int
	reqThreads      [3]int
	// clusterBlocks is the shape of a cluster, 1×1×1 where blocks are alone.
	clusterBlocks [3]int
}

// Name is the entry's name.
func (k *kernel) Name() string { return k.name }

type parameter struct {
	name   string
	offset int
	size   int
}

// constant32 is a slot that holds the same immediate in every lane.
type constant32 struct {
	slot  int32
	value uint32
}

type constant64 struct {
	slot  int32
	value uint64
}

// sharedAddress is a slot that holds an address of the block's shared memory, in the generic space
// if the window is in its offset. Offsets of dynamic shared memory are known at decode time too,
// since it follows the static variables.
type sharedAddress struct {
	slot   int32
	wide   bool // 64 bits
	offset uint64
}
