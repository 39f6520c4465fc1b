package main

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
)

// undefined returns, sorted, the driver functions that the objects in the archives call and none
// of them defines. (gorgonia.org/cu has C functions of its own that are named like the driver's.)
func undefined(archives []string) ([]string, error) {
	defined := map[string]bool{} // by function; false for those that are only called
	for _, name := range archives {
		data, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		if err := scan(data, defined); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	var symbols []string
	for name, here := range defined {
		if !here {
			symbols = append(symbols, name)
		}
	}
	slices.Sort(symbols)
	return symbols, nil
}

// scan notes the functions named like the driver's in one archive of a Go package: the compiler's
// export data and object file, which are not ELF, and one ELF object for each C file.
func scan(archive []byte, defined map[string]bool) error {
	members, err := readArchive(archive)
	if err != nil {
		return err
	}
	for _, member := range members {
		if !bytes.HasPrefix(member, []byte(elf.ELFMAG)) {
			continue
		}
		object, err := elf.NewFile(bytes.NewReader(member))
		if err != nil {
			return err
		}
		table, err := object.Symbols()
		if err != nil && !errors.Is(err, elf.ErrNoSymbols) {
			return err
		}
		for _, s := range table {
			if elf.ST_BIND(s.Info) == elf.STB_GLOBAL && isDriverFunction(s.Name) {
				defined[s.Name] = defined[s.Name] || s.Section != elf.SHN_UNDEF
			}
		}
	}
	return nil
}

// isDriverFunction says whether a symbol is named like the driver's functions: cuMemAlloc_v2.
func isDriverFunction(name string) bool {
	return len(name) > 2 && strings.HasPrefix(name, "cu") && 'A' <= name[2] && name[2] <= 'Z'
}

const (
	archiveMagic  = "!<arch>\n"
	archiveHeader = 60 // bytes: name 16, date 12, uid 6, gid 6, mode 8, size 10, end 2
)

// readArchive returns the contents of an ar archive's members.
func readArchive(data []byte) ([][]byte, error) {
	rest, ok := bytes.CutPrefix(data, []byte(archiveMagic))
	if !ok {
		return nil, errors.New("not an ar archive")
	}
	var members [][]byte
	for len(rest) > 0 {
		if len(rest) < archiveHeader {
			return nil, io.ErrUnexpectedEOF
		}
		field := strings.TrimSpace(string(rest[48:58]))
		size, err := strconv.ParseUint(field, 10, 40)
		if err != nil {
			return nil, fmt.Errorf("member size %q: %w", field, err)
		}
		rest = rest[archiveHeader:]
		if size > uint64(len(rest)) {
			return nil, io.ErrUnexpectedEOF
		}
		members = append(members, rest[:size])
		rest = rest[min(size+size%2, uint64(len(rest))):] // members start at even offsets
	}
	return members, nil
}
