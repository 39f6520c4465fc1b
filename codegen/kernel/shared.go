package kernel

// staticShared is the largest amount of shared memory that a kernel may declare; more is given
// by the launch.
const staticShared = 48 << 10

// SharedOffsets places the shared arrays one after the other, at multiples of 16 bytes.
func (k *Kernel) SharedOffsets() []int64 {
	offsets := make([]int64, len(k.Shared))
	end := int64(0)
	for i, b := range k.Shared {
		offsets[i] = end
		end = (end + b.Length*int64(b.DType.Size()) + 15) / 16 * 16
	}
	return offsets
}

// SharedBytes is the size of all shared arrays together.
func (k *Kernel) SharedBytes() int64 {
	total := int64(0)
	for _, b := range k.Shared {
		total += (b.Length*int64(b.DType.Size()) + 15) / 16 * 16
	}
	return total
}

// DynamicShared is the number of bytes that the launch must give: 0 where the kernel declares
// its shared memory itself.
func (k *Kernel) DynamicShared() int {
	if n := k.SharedBytes(); n > staticShared {
		return int(n)
	}
	return 0
}
