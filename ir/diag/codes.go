package diag

import "slices"

// Status is the exit status of the command for an error of some class.
type Status int

const (
	OK          Status = 0
	Differs     Status = 1 // --expect, diff, check
	Usage       Status = 2
	BadInput    Status = 3
	Unsupported Status = 4
	InternalBug Status = 5
	RunFailed   Status = 6
)

// Info documents a code.
type Info struct {
	Code   Code
	Status Status
	Title  string // a few words
	Help   string // what it means and what to do: a paragraph, printed by weft explain
}

// Bug is the code of every broken invariant of weft itself.
const Bug Code = "W0900"

// Codes lists all codes in ascending order. Ranges: W00 command line, W09 bugs, W10 files and
// weights, W11 torch.export archives, W12 ONNX, W20 unsupported operators, W30 program text
// and verifier, W40 compiling, W50 plan, W60 artifact, W70 running.
func Codes() []Info {
	all := slices.Concat(commandCodes, fileCodes, fxCodes, onnxCodes, programCodes, compileCodes, planCodes, artifactCodes, runCodes)
	slices.SortFunc(all, func(a, b Info) int {
		if a.Code < b.Code {
			return -1
		}
		return 1
	})
	return all
}

// Lookup finds a code's documentation.
func Lookup(code Code) (Info, bool) {
	for _, i := range Codes() {
		if i.Code == code {
			return i, true
		}
	}
	return Info{}, false
}

// ExitStatus is the exit status for err: the most severe class among its errors, where a bug
// outranks bad input and bad input outranks unsupported.
func ExitStatus(err error) Status {
	if err == nil {
		return OK
	}
	rank := map[Status]int{OK: 0, Differs: 1, RunFailed: 2, Unsupported: 3, BadInput: 4, Usage: 5, InternalBug: 6}
	status := OK
	for _, d := range All(err) {
		if d.Severity != Error {
			continue
		}
		s := InternalBug
		if info, ok := Lookup(d.Code); ok {
			s = info.Status
		}
		if rank[s] > rank[status] {
			status = s
		}
	}
	return status
}

var commandCodes = []Info{
	{"W0001", Usage, "wrong command line", "The command's flags or arguments are off. The message names the flag; `weft COMMAND --help` lists them."},
	{"W0002", Usage, "unknown name", "A name on the command line (target, entry, dim, pass, input) does not exist. The message lists the names that do."},
	{"W0003", BadInput, "file cannot be read", "The file does not exist or cannot be opened. Check the path and its permissions."},
	{"W0004", BadInput, "file cannot be written", "The output could not be written; nothing of it was left behind. Check the folder and the free space."},
	{"W0900", InternalBug, "bug in weft", "An invariant of the compiler does not hold. Please report it with the command and, if you can, the input."},
}
