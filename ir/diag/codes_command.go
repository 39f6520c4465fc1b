package diag

// Codes of the command line, and of what can go wrong in every command.
const (
	CommandLine       Code = "W0001"
	UnknownName       Code = "W0002"
	FileUnreadable    Code = "W0003"
	FileUnwritable    Code = "W0004"
	DeviceUnavailable Code = "W0005"
	Interrupted       Code = "W0006"
	OutputsDiffer     Code = "W0007"
	InvalidPTX        Code = "W0008"
	NotReproducer     Code = "W0009"
	// Bug is the code of every broken invariant of weft itself.
	Bug Code = "W0900"
)

var commandCodes = []Info{
	{CommandLine, Usage, "wrong command line", "The command's flags or arguments are off. The message names the flag; `weft COMMAND --help` lists them."},
	{UnknownName, Usage, "unknown name", "A name on the command line (command, target, entry, dim, pass, input) does not exist. The message lists the names that do."},
	{FileUnreadable, BadInput, "file cannot be read", "The file does not exist or cannot be opened. Check the path and its permissions."},
	{FileUnwritable, BadInput, "file cannot be written", "The output could not be written; nothing of it was left behind. Check the folder and the free space."},
	{DeviceUnavailable, RunFailed, "device is not available", "The device that was asked for cannot be used on this machine: there is no driver, no GPU, or this weft was built without it. `weft doctor` shows what was found; --device emu runs the same artifact without a GPU."},
	{Interrupted, RunFailed, "interrupted", "The command was stopped by a signal. No partial output was left behind."},
	{OutputsDiffer, Differs, "outputs differ from what was expected", "At least one output is farther from the expected value than --rtol and --atol allow. The table shows the largest errors and where they are; `weft run --device reference` gives the float64 values to compare with."},
	{InvalidPTX, BadInput, "PTX text is not accepted", "`weft ptx check` found a syntax error, something that weft's kernels must not contain (float arithmetic without a rounding suffix, local memory, calls), or something that the emulator does not know. The place is line:column."},
	{NotReproducer, BadInput, "not a reproducer", "The file is not one that weft writes when a compile fails with W0900: its header lacks a line, or has one that cannot be read."},
	{Bug, InternalBug, "bug in weft", "An invariant of the compiler does not hold. The place names the pass or step. Where it could, weft wrote a reproducer: a text file with the program before that step, the passes still to run, and the options, which `weft reproduce FILE` replays. Please report it with the command and, if you can, that file."},
}
