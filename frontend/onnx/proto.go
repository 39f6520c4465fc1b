package onnx

// The messages of an ONNX file that the importer reads. Field numbers are in decode.go.

type modelProto struct {
	irVersion    int64
	producerName string
	opsets       []opset
	graph        *graphProto
	functions    []*functionProto
	training     int // number of training_info messages
}

type opset struct {
	domain  string
	version int64
}

type graphProto struct {
	name         string
	nodes        []*nodeProto
	initializers []*tensorProto
	sparse       []*sparseTensorProto
	inputs       []*valueInfoProto
	outputs      []*valueInfoProto
	valueInfo    []*valueInfoProto
}

type nodeProto struct {
	name, opType, domain, overload string
	inputs, outputs                []string
	attributes                     []*attributeProto
	scopes, stack                  string // of metadata_props: where the exporter saw the operator
	index                          int    // position in its graph or function
}

type functionProto struct {
	name, domain, overload string
	inputs, outputs        []string
	attributes             []string          // without defaults
	defaults               []*attributeProto // with defaults
	nodes                  []*nodeProto
	opsets                 []opset
}

// attributeType is AttributeProto.AttributeType.
type attributeType int32

const (
	attrUndefined attributeType = 0
	attrFloat     attributeType = 1
	attrInt       attributeType = 2
	attrString    attributeType = 3
	attrTensor    attributeType = 4
	attrGraph     attributeType = 5
	attrFloats    attributeType = 6
	attrInts      attributeType = 7
	attrStrings   attributeType = 8
	attrTensors   attributeType = 9
	attrGraphs    attributeType = 10
	attrSparse    attributeType = 11
	attrSparses   attributeType = 12
	attrType      attributeType = 13
	attrTypes     attributeType = 14
)

var attributeTypeNames = [...]string{"nothing", "a float", "an int", "a string", "a tensor", "a graph", "floats", "ints", "strings",
	"tensors", "graphs", "a sparse tensor", "sparse tensors", "a type", "types"}

func (t attributeType) String() string {
	if t < 0 || int(t) >= len(attributeTypeNames) {
		return "an unknown type"
	}
	return attributeTypeNames[t]
}

type attributeProto struct {
	name, ref string
	kind      attributeType
	f         float32
	i         int64
	s         []byte
	t         *tensorProto
	g         *graphProto
	sparse    *sparseTensorProto
	tp        *typeProto
	floats    []float32
	ints      []int64
	strings   [][]byte
	graphs    int // number of graphs in a list
	tensors   int // number of tensors in a list
}

type tensorProto struct {
	name     string
	dims     []int64
	dataType int32
	raw      []byte // raw_data; a view of the file
	hasRaw   bool
	// The typed fields: packed runs as they lie in the file, in order.
	floatData, doubleData            [][]byte // little-endian, 4 and 8 bytes an element
	int32Data, int64Data, uint64Data [][]byte // varints
	strings                          [][]byte
	external                         bool
	externalData                     map[string]string
	segmented                        bool
}

type sparseTensorProto struct {
	values, indices *tensorProto
	dims            []int64
}

type valueInfoProto struct {
	name string
	kind *typeProto
}

// typeProto is one of its fields, or none.
type typeProto struct {
	tensor   *tensorType
	sequence *typeProto
	optional *typeProto
	mapping  *mapType
	sparse   bool
	opaque   bool
}

type tensorType struct {
	elem     int32
	dims     []dimension
	hasShape bool
}

type mapType struct {
	key   int32
	value *typeProto
}

type dimension struct {
	value    int64
	hasValue bool
	param    string
}
