package emu

// vectorTwins are lane operations in assembly, by the names of their portable twins, whose
// bits they give.
type vectorTwins struct {
	float32, any32, unsigned32, signed32 map[string]lane32
	any64                                map[string]lane64
	wide                                 map[string]laneWide
	shift                                map[string]laneShift
	compareSigned, compareUnsigned       map[string]compare32
	longSigned, longUnsigned             map[string]compare64
	compareFloat                         map[string]compare32
}

// twins are those of this machine.
var twins = vectors()

// pick is the vector twin of an operation if there is one.
func pick[F any](twins map[string]F, name string, portable F) F {
	if twin, ok := twins[name]; ok {
		return twin
	}
	return portable
}
