package emu

import "weft/codegen/ptx"

// basicBlock is a run of instructions that is entered at its start only.
type basicBlock struct {
	start, end int // indices into Function.Body, half open
	successors []int
}

// flow is the control flow graph of a function. Block len(blocks) is the virtual exit.
type flow struct {
	blocks  []basicBlock
	blockOf []int // by instruction; one more for the end of the body
	// postDominator is the immediate post-dominator of each block, where lanes that took
	// different ways out of it meet again; the virtual exit if they never do.
	postDominator []int
}

// endsThread reports whether an unguarded instruction leaves the kernel.
func endsThread(in *ptx.Instruction) bool {
	return in.Opcode == "ret" || in.Opcode == "exit" || in.Opcode == "trap"
}

func branchTargets(in *ptx.Instruction) []int {
	var targets []int
	if in.Opcode == "bra" || in.Opcode == "brx" {
		for _, operand := range in.Operands {
			targets = append(targets, operand.Targets...)
		}
	}
	return targets
}

func buildFlow(body []*ptx.Instruction) *flow {
	leader := make([]bool, len(body)+1)
	leader[0] = true
	for i, in := range body {
		targets := branchTargets(in)
		for _, t := range targets {
			leader[t] = true
		}
		if len(targets) > 0 || endsThread(in) {
			leader[i+1] = true
		}
	}
	f := &flow{blockOf: make([]int, len(body)+1)}
	for i := range body {
		if leader[i] {
			f.blocks = append(f.blocks, basicBlock{start: i})
		}
		f.blockOf[i] = len(f.blocks) - 1
		f.blocks[len(f.blocks)-1].end = i + 1
	}
	exit := len(f.blocks)
	f.blockOf[len(body)] = exit
	for i := range f.blocks {
		b := &f.blocks[i]
		last := body[b.end-1]
		for _, t := range branchTargets(last) {
			b.successors = append(b.successors, f.blockOf[t])
		}
		switch conditional := last.Guard != nil; {
		case endsThread(last) && !conditional:
			b.successors = append(b.successors, exit)
		case endsThread(last):
			b.successors = append(b.successors, exit, f.blockOf[b.end])
		case len(b.successors) == 0 || conditional:
			b.successors = append(b.successors, f.blockOf[b.end])
		}
	}
	f.findPostDominators()
	return f
}

// findPostDominators is the algorithm of Cooper, Harvey and Kennedy on the reversed graph.
// Blocks that cannot reach the exit (endless loops) get the exit.
//
// A guarded ret does not split the warp: its lanes are gone, the others go on. Its edge to
// the exit is therefore ignored here, else early exits would keep lanes from meeting again.
func (f *flow) findPostDominators() {
	exit := len(f.blocks)
	predecessors := make([][]int, exit+1)
	for i, b := range f.blocks {
		for _, s := range f.meetingSuccessors(b) {
			predecessors[s] = append(predecessors[s], i)
		}
	}
	order := make([]int, exit+1) // postorder number on the reversed graph
	var sequence []int           // in postorder
	type frame struct{ block, next int }
	seen := make([]bool, exit+1)
	seen[exit] = true
	for stack := []frame{{exit, 0}}; len(stack) > 0; {
		top := &stack[len(stack)-1]
		if top.next < len(predecessors[top.block]) {
			p := predecessors[top.block][top.next]
			top.next++
			if !seen[p] {
				seen[p] = true
				stack = append(stack, frame{p, 0})
			}
			continue
		}
		order[top.block] = len(sequence)
		sequence = append(sequence, top.block)
		stack = stack[:len(stack)-1]
	}
	dominator := make([]int, exit+1)
	for i := range dominator {
		dominator[i] = -1
	}
	dominator[exit] = exit
	for changed := true; changed; {
		changed = false
		for i := len(sequence) - 2; i >= 0; i-- {
			b := sequence[i]
			next := -1
			for _, s := range f.meetingSuccessors(f.blocks[b]) {
				if dominator[s] == -1 {
					continue
				}
				if next == -1 {
					next = s
				}
				for other := s; next != other; {
					for order[next] < order[other] {
						next = dominator[next]
					}
					for order[other] < order[next] {
						other = dominator[other]
					}
				}
			}
			if next != dominator[b] {
				dominator[b] = next
				changed = true
			}
		}
	}
	for i, d := range dominator {
		if d == -1 {
			dominator[i] = exit
		}
	}
	f.postDominator = dominator[:exit]
}

func (f *flow) meetingSuccessors(b basicBlock) []int {
	exit := len(f.blocks)
	if len(b.successors) == 2 && b.successors[0] == exit && b.successors[1] != exit {
		return b.successors[1:]
	}
	return b.successors
}
