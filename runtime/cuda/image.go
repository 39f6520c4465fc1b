package cuda

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

var (
	ptxComment = regexp.MustCompile(`(?s)/\*.*?\*/|//[^\n]*`)
	ptxVersion = regexp.MustCompile(`^\s*\.version\s`)
	ptxEntry   = regexp.MustCompile(`\.entry\s+([A-Za-z_$%][A-Za-z0-9_$]*)`)
)

// checkImage rejects what the driver would read beyond: it takes a pointer without a length, ends a
// text at a zero byte and believes the offsets in anything else.
func checkImage(image []byte) error {
	if !bytes.HasPrefix(image, []byte(elf.ELFMAG)) {
		if bytes.IndexByte(image, 0) >= 0 || !ptxVersion.Match(ptxComment.ReplaceAll(image, []byte(" "))) {
			return errors.New("neither PTX nor a cubin")
		}
		return nil
	}
	object, err := parseCubin(image)
	if err != nil {
		return fmt.Errorf("a damaged cubin: %w", err)
	}
	size := uint64(len(image))
	for _, s := range object.Sections {
		if s.Type != elf.SHT_NOBITS && (s.Offset > size || s.FileSize > size-s.Offset) {
			return fmt.Errorf("a damaged cubin: section %s reaches beyond the end", s.Name)
		}
	}
	for i, p := range object.Progs {
		if p.Off > size || p.Filesz > size-p.Off {
			return fmt.Errorf("a damaged cubin: segment %d reaches beyond the end", i)
		}
	}
	return nil
}

// parseCubin reads the tables of a cubin. From CUDA 12 on ptxas writes the toolkit's version into
// e_version, which is 1 in all other ELF files and must be so for debug/elf.
func parseCubin(image []byte) (*elf.File, error) {
	const version, end = 20, 24 // of e_version in the header
	if len(image) >= end && image[elf.EI_DATA] == byte(elf.ELFDATA2LSB) {
		image = bytes.Clone(image)
		binary.LittleEndian.PutUint32(image[version:], uint32(elf.EV_CURRENT))
	}
	return elf.NewFile(bytes.NewReader(image))
}

// kernelNames lists, sorted, the entries of a PTX text or of a cubin, for messages: drivers before
// CUDA 12.4 cannot. An image that is neither has none.
func kernelNames(image []byte) []string {
	var names []string
	if bytes.HasPrefix(image, []byte(elf.ELFMAG)) {
		object, err := parseCubin(image)
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
