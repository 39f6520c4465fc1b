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

// undefined returns, sorted, the driver functions that the objects in the archives leave
// undefined.
func undefined(archives []string) ([]string, error) {
	var symbols []string
	for _, name := range archives {
		data, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		found, err := undefinedIn(data)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if len(found) == 0 {
			return nil, fmt.Errorf("%s: no object in it calls the CUDA driver", name)
		}
		symbols = append(symbols, found...)
	}
	slices.Sort(symbols)
	return slices.Compact(symbols), nil
}

// undefinedIn reads one archive of a Go package: the compiler's export data and object file, which
// are not ELF, and one ELF object for each C file.
func undefinedIn(archive []byte) ([]string, error) {
	members, err := readArchive(archive)
	if err != nil {
		return nil, err
	}
	var symbols []string
	for _, member := range members {
		if !bytes.HasPrefix(member, []byte(elf.ELFMAG)) {
			continue
		}
		object, err := elf.NewFile(bytes.NewReader(member))
		if err != nil {
			return nil, err
		}
		table, err := object.Symbols()
		if err != nil && !errors.Is(err, elf.ErrNoSymbols) {
			return nil, err
		}
		for _, s := range table {
			if s.Section == elf.SHN_UNDEF && isDriverFunction(s.Name) {
				symbols = append(symbols, s.Name)
			}
		}
	}
	return symbols, nil
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
