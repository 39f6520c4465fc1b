package frontend

import (
	"slices"

	"weft/frontend/lower"
)

// File is a model file and the entry that it becomes; an empty Entry is "forward", or the names that
// the file gives. Constants are "INPUT=VALUES": inputs of the model that become constants, such as
// those that decide about shapes.
type File struct {
	Entry, Path string
	Constants   []string
}

// ImportFiles reads model files, joins them over their common states (see Join), and applies what
// o.Dims says of their dims. o.Constants is left alone: each file has its own. The caller closes the
// result.
func ImportFiles(files []File, o Options, contents bool) (_ *lower.Imported, err error) {
	var parts []Part
	defer func() {
		if err != nil {
			for _, p := range parts {
				p.Close()
			}
		}
	}()
	for _, f := range files {
		one := Options{Dims: o.Dims, Constants: f.Constants, Mesh: o.Mesh}
		if len(files) > 1 {
			one.Dims = FactsOf(f.Entry, o.Dims)
		}
		imported, err := Import(f.Path, one)
		if err != nil {
			return nil, err
		}
		parts = append(parts, Part{Entry: f.Entry, Path: f.Path, Imported: imported})
	}
	joined, err := Join(parts, contents)
	if err != nil {
		return nil, err
	}
	return joined, ApplyDims(joined.Program, o.Dims)
}

// ConstantsOf lists the constants of all files in order, with the entry's name where there are several.
func ConstantsOf(files []File) (constants []string) {
	for _, f := range files {
		for _, constant := range f.Constants {
			if len(files) > 1 {
				constant = f.Entry + "." + constant
			}
			constants = append(constants, constant)
		}
	}
	slices.Sort(constants)
	return constants
}
