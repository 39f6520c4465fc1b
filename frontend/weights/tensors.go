package weights

import (
	"io"
	"strings"

	"weft/ir"
	"weft/ir/diag"
)

// ReadTensors reads the tensor file at path, chosen by suffix: .safetensors, .npz or .npy,
// whose single tensor is named single. The names are in the order of the file. Tensors may be
// views of the mapped file: the closer must stay open while they are used.
func ReadTensors(path, single string) (names []string, tensors map[string]*ir.Tensor, closer io.Closer, err error) {
	read, err := readerOf(path)
	if err != nil {
		return nil, nil, nil, err
	}
	m, err := Map(path)
	if err != nil {
		return nil, nil, nil, err
	}
	list, err := read(m.Data, single)
	if err != nil {
		m.Close()
		return nil, nil, nil, inFile(err, path)
	}
	tensors = make(map[string]*ir.Tensor, len(list))
	for _, n := range list {
		names = append(names, n.Name)
		tensors[n.Name] = n.Tensor
	}
	return names, tensors, m, nil
}

func readerOf(path string) (func(file []byte, single string) ([]Named, error), error) {
	switch {
	case strings.HasSuffix(path, safetensorsSuffix):
		return readSafetensors, nil
	case strings.HasSuffix(path, ".npz"):
		return readNpz, nil
	case strings.HasSuffix(path, ".npy"):
		return readNpy, nil
	}
	return nil, unknownSuffix(path)
}

func unknownSuffix(path string) error {
	return diag.Errorf(diag.FileSuffix, "", "is no tensor file by its suffix").In(path).Suggest("use .safetensors, .npz or .npy")
}

func readSafetensors(file []byte, _ string) ([]Named, error) {
	st, err := ParseSafetensors(file)
	if err != nil {
		return nil, err
	}
	list := make([]Named, len(st.Tensors))
	for i, t := range st.Tensors {
		list[i] = Named{t.Name, &ir.Tensor{DType: t.DType, Shape: t.Shape, Data: t.Data}}
	}
	return list, nil
}

func readNpy(file []byte, single string) ([]Named, error) {
	t, err := ParseNpy(file)
	if err != nil {
		return nil, err
	}
	return []Named{{single, t}}, nil
}

// readNpz reads every member NAME.npy of an archive as the tensor NAME.
func readNpz(file []byte, _ string) ([]Named, error) {
	z, err := ParseZip(file)
	if err != nil {
		return nil, err
	}
	var list []Named
	for _, member := range z.Names() {
		name, ok := strings.CutSuffix(member, ".npy")
		if !ok {
			return nil, diag.Errorf(diag.BadZip, quote(member), "members of .npz archives are .npy files")
		}
		data, err := z.Verified(member)
		if err != nil {
			return nil, err
		}
		t, err := ParseNpy(data)
		if err != nil {
			return nil, inPlace(err, quote(member))
		}
		list = append(list, Named{name, t})
	}
	return list, nil
}

// WriteTensors writes the tensors to path, whole or not at all, in the format of the suffix:
// .npz and .npy (one tensor, whose name is dropped) in the given order, .safetensors in its own
// (see LayoutSafetensors). The same tensors give the same bytes.
func WriteTensors(path string, tensors []Named) error {
	seen := map[string]bool{}
	for _, t := range tensors {
		if seen[t.Name] {
			return diag.Errorf(diag.FileDuplicate, quote(t.Name), "two tensors have this name").In(path)
		}
		seen[t.Name] = true
	}
	var err error
	switch {
	case strings.HasSuffix(path, safetensorsSuffix):
		err = writeSafetensorsFile(path, tensors)
	case strings.HasSuffix(path, ".npz"):
		err = writeNpz(path, tensors)
	case strings.HasSuffix(path, ".npy"):
		if len(tensors) != 1 {
			return diag.Errorf(diag.FileSuffix, "", "an .npy file holds one tensor, not %d", len(tensors)).In(path).Suggest("use .safetensors or .npz")
		}
		err = WriteFile(path, func(w io.Writer) error { return WriteNpy(w, tensors[0].Tensor) })
	default:
		err = unknownSuffix(path)
	}
	return inFile(err, path)
}

func writeSafetensorsFile(path string, tensors []Named) error {
	for _, t := range tensors {
		if t.Tensor.DType == ir.String {
			return canStore(Info{Name: t.Name, DType: ir.String})
		}
	}
	s, err := FromTensors(tensors)
	if err != nil {
		return err
	}
	return WriteFile(path, func(w io.Writer) error { return WriteSafetensors(w, s, SafetensorsOptions{}) })
}

func writeNpz(path string, tensors []Named) error {
	p, err := CreateFile(path)
	if err != nil {
		return err
	}
	defer p.Abort()
	z := NewZipWriter(p)
	for _, t := range tensors {
		header, size, err := npyLayout(t.Tensor)
		if err != nil {
			return inPlace(err, quote(t.Name))
		}
		if !safeName(t.Name + ".npy") {
			return diag.Errorf(diag.BadZip, quote(t.Name), "the name cannot be that of an archive's member")
		}
		if err := z.Create(t.Name+".npy", int64(len(header))+size, 64); err != nil {
			return WriteError(path, err)
		}
		if err := WriteNpy(z, t.Tensor); err != nil {
			return WriteError(path, err)
		}
	}
	if err := z.Close(); err != nil {
		return WriteError(path, err)
	}
	return p.Commit()
}
