package cuda

import (
	"bytes"
	"debug/elf"
	"regexp"
	"slices"
	"strings"
)

var (
	ptxComment = regexp.MustCompile(`(?s)/\*.*?\*/|//[^\n]*`)
	ptxEntry   = regexp.MustCompile(`\.entry\s+([A-Za-z_$%][A-Za-z0-9_$]*)`)
)

// kernelNames lists, sorted, the entries of a PTX text or of a cubin, for messages: drivers before
// CUDA 12.4 cannot. An image that is neither has none.
func kernelNames(image []byte) []string {
	var names []string
	if bytes.HasPrefix(image, []byte(elf.ELFMAG)) {
		object, err := elf.NewFile(bytes.NewReader(image))
		if err != nil {
			return nil
		}
		for _, s := range object.Sections {
			// A cubin has the code of entry k in section .text.k, and its constants (parameters
			// among them), which functions lack, in .nv.constant0.k.
			if name, ok := strings.CutPrefix(s.Name, ".nv.constant0."); ok {
				names = append(names, name)
			}
		}
	} else {
		for _, m := range ptxEntry.FindAllSubmatch(ptxComment.ReplaceAll(image, []byte(" ")), -1) {
			names = append(names, string(m[1]))
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
