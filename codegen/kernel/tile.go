package kernel

import "weft/ir"

// A panel is as wide as a row of all banks: 128 bytes, in chunks of 16.
const (
	panelBytes  = 128
	panelChunks = panelBytes / 16
)

// chunkSize is the number of half elements in 16 bytes.
const chunkSize = 8

// sharedTile is a tile of an operand on its way from global memory to the tensor cores, or to
// the threads of an attention kernel. It has one or several buffers (stages) of height rows and
// width elements in shared memory. Rows are cut into chunks of 16 bytes. Their order is permuted
// by row (swizzle), so that ldmatrix and the copies that fill the tile meet no bank conflicts;
// or rows are pitch elements apart.
type sharedTile struct {
	ev            *evaluator
	threads       int
	dtype         ir.DType // in shared memory
	value         ir.Value
	width, height int
	pitch         int  // elements from row to row where chunks are in order; 0: swizzled, width
	spread        int  // turns of chunks from row to row
	panels        bool // columns in panels of 128 bytes, one after the other: the layout that wgmma reads
	shared        *Buffer
	// at gives the element of value at a row and column of the tile whose origin is given, and
	// whether it is inside of the operand; bound is the column that decides about the latter.
	at func(origin, row, column, bound *Expr) (*Point, *Expr)
	// whole: the elements of a chunk are all inside or all outside.
	whole bool
}

// allocate gives the tile its shared memory.
func (t *sharedTile) allocate(stages int) {
	t.shared = t.ev.b.SharedArray(t.dtype, int64(stages*t.rowPitch()*t.height))
	if t.panels {
		t.shared.Align = panelAlignment
	}
}

// chunk is the number of elements in 16 bytes.
func (t *sharedTile) chunk() int { return 16 / t.dtype.Size() }

// rowPitch is the number of elements from one row to the next.
func (t *sharedTile) rowPitch() int { return max(t.width, t.pitch) }

// chunkOf is the thread's i-th chunk: its row, and its number in the row.
func (t *sharedTile) chunkOf(i int) (row, chunk *Expr) {
	b := t.ev.b
	id := b.Add(b.ThreadIndex(), b.Idx(int64(i*t.threads)))
	return b.DivMod(id, b.Idx(int64(t.width/t.chunk())))
}

// offset is the element offset of a chunk in a stage.
func (t *sharedTile) offset(row, chunk *Expr) *Expr {
	b := t.ev.b
	start, size := b.Mul(row, b.Idx(int64(t.rowPitch()))), b.Idx(int64(t.chunk()))
	if t.pitch > 0 {
		return b.Add(start, b.Mul(chunk, size))
	}
	if t.panels {
		panel, within := b.DivMod(chunk, b.Idx(panelChunks))
		_, turn := b.DivMod(row, b.Idx(panelChunks))
		start = b.Mul(b.Add(b.Mul(panel, b.Idx(int64(t.height))), row), b.Idx(int64(panelChunks*t.chunk())))
		return b.Add(start, b.Mul(b.Arith(Xor, b.Index, within, turn), size))
	}
	perRow := int64(t.width / t.chunk())
	turn := row
	if perRow < 8 { // several rows share the 128 bytes of all banks
		turn, _ = b.DivMod(row, b.Idx(8/perRow))
	}
	// A permutation by exclusive or stays inside of a power of two of chunks.
	_, turn = b.DivMod(b.Mul(turn, b.Idx(int64(max(1, t.spread)))), b.Idx(min(perRow&-perRow, 8)))
	return b.Add(start, b.Mul(b.Arith(Xor, b.Index, chunk, turn), size))
}

// points gives the elements of a chunk and whether each is inside of the operand.
func (t *sharedTile) points(origin, row, chunk *Expr) ([]*Point, []*Expr) {
	b := t.ev.b
	points, valid := make([]*Point, t.chunk()), make([]*Expr, t.chunk())
	first := b.Mul(chunk, b.Idx(int64(t.chunk())))
	for l := range points {
		column := b.Add(first, b.Idx(int64(l)))
		bound := first
		if !t.whole {
			bound = column
		}
		points[l], valid[l] = t.at(origin, row, column, bound)
	}
	return points, valid
}

// plainLoad tells whether a chunk is 16 adjacent bytes of a buffer, all inside or all outside;
// then it gives the load and the predicate.
func (t *sharedTile) plainLoad(origin, row, chunk *Expr) (load, valid *Expr, ok bool) {
	points, inside := t.points(origin, row, chunk)
	for _, v := range inside[1:] {
		if v != inside[0] {
			return nil, nil, false
		}
	}
	if !t.ev.nonZero(t.ev.shape(t.value)) {
		return nil, nil, false
	}
	values := t.ev.value(t.value, t.ev.clampPoints(points, inside))
	for i, x := range values {
		if x.Op != Lane || x.Imm != int64(i) || x.Args[0] != values[0].Args[0] || x.Args[0].Imm != int64(t.chunk()) || x.Args[0].Buffer.DType != t.dtype {
			return nil, nil, false
		}
	}
	return values[0].Args[0], inside[0], true
}

// fill brings the tile at origin into a stage: by asynchronous copies where chunks are plain
// loads, else through registers. What is outside of the operand becomes zero.
func (t *sharedTile) fill(stage, origin *Expr) {
	b := t.ev.b
	base := b.Mul(stage, b.Idx(int64(t.rowPitch()*t.height)))
	chunks := t.width * t.height / t.chunk()
	for i := 0; i*t.threads < chunks; i++ {
		row, chunk := t.chunkOf(i)
		b.If(b.Less(b.Add(b.ThreadIndex(), b.Idx(int64(i*t.threads))), b.Idx(int64(chunks))), func() {
			to := b.Add(base, t.offset(row, chunk))
			if load, valid, ok := t.plainLoad(origin, row, chunk); ok {
				size := b.Select(valid, b.Int(ir.I32, 16), b.Int(ir.I32, 0))
				b.Do("cp.async.cg.shared.global.16.zfill", b.Address(t.shared, to), b.Address(load.Buffer, load.Args[0]), size)
				return
			}
			points, valid := t.points(origin, row, chunk)
			b.Store(t.shared, to, t.ev.guarded(t.value, points, valid, repeat(b.zero(held(t.dtype)), t.chunk()))...)
		})
	}
}

// matrices loads four 8x8 matrices of a stage. rowHalf and columnHalf say for the thread's
// matrix (0 to 3, given as a pair of bits by lane) which half of 16 rows and 16 columns it is.
func (t *sharedTile) matrices(stage, row *Expr, column int, rowHalf, columnHalf, eighth *Expr, transposed bool) []*Expr {
	b := t.ev.b
	name := "ldmatrix.sync.aligned.m8n8.x4.shared.b16"
	if transposed {
		name = "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16"
	}
	r := b.Add(row, b.Add(b.Mul(rowHalf, b.Idx(8)), eighth))
	at := t.offset(r, b.Add(columnHalf, b.Idx(int64(column/t.chunk()))))
	base := b.Mul(stage, b.Idx(int64(t.rowPitch()*t.height)))
	word := []ir.DType{ir.I32, ir.I32, ir.I32, ir.I32}
	return b.Instruction(name, word, b.Address(t.shared, b.Add(base, at)))
}

// matrixLane gives the parts of a lane's number that choose what it addresses in ldmatrix.x4:
// the matrix as two bits, and the row in it.
func matrixLane(b *Builder, lane *Expr) (high, low, eighth *Expr) {
	matrix, eighth := b.DivMod(lane, b.Idx(8))
	high, low = b.DivMod(matrix, b.Idx(2))
	return high, low, eighth
}
