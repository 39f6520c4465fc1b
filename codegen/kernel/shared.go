package kernel

import "slices"

// staticShared is the largest amount of shared memory that a kernel may declare; more is given
// by the launch.
const staticShared = 48 << 10

// SharedAlign is the number of bytes to which a shared array is aligned.
func (b *Buffer) SharedAlign() int64 { return max(b.Align, 16) }

// SharedOffsets places the shared arrays one after the other, aligned as they ask for.
func (k *Kernel) SharedOffsets() []int64 {
	offsets, _ := k.placeShared()
	return offsets
}

// SharedBytes is the size of all shared arrays together.
func (k *Kernel) SharedBytes() int64 {
	_, total := k.placeShared()
	return total
}

func (k *Kernel) placeShared() (offsets []int64, total int64) {
	offsets = make([]int64, len(k.Shared))
	at := map[*Buffer]int64{}
	for i, b := range k.Shared {
		if b.Over != nil {
			offsets[i] = at[b.Over]
			total = max(total, (offsets[i]+b.Length*int64(b.DType.Size())+15)/16*16)
			continue
		}
		align := b.SharedAlign()
		offsets[i] = (total + align - 1) / align * align
		at[b] = offsets[i]
		total = (offsets[i] + b.Length*int64(b.DType.Size()) + 15) / 16 * 16
	}
	return offsets, total
}

// DynamicShared is the number of bytes that the launch must give: 0 where the kernel declares
// its shared memory itself.
func (k *Kernel) DynamicShared() int {
	n := k.SharedBytes()
	if n > staticShared || slices.ContainsFunc(k.Shared, func(b *Buffer) bool { return b.Over != nil }) {
		return int(n)
	}
	return 0
}
