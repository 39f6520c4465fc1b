package diag

// Codes of launch plans.
const (
	PlanSyntax   Code = "W5000"
	PlanVersion  Code = "W5001"
	PlanTooLarge Code = "W5002"
	InvalidPlan  Code = "W5003"
	PlanMismatch Code = "W5004"

	RanksDisagree Code = "W5005"
	PlanMemory    Code = "W5006"
)

var planCodes = []Info{
	{PlanSyntax, BadInput, "malformed launch plan", "The plan is not JSON of the form that weft writes: a syntax error, an unknown field, a value of the wrong kind or a size that is no expression. Plans are written by `weft compile`; compile again."},
	{PlanVersion, BadInput, "launch plan of an unknown version", "The plan was written by a weft whose plan format this one does not know. Use a newer weft, or compile again with this one."},
	{PlanTooLarge, BadInput, "launch plan exceeds a limit", "The plan has more bytes or values than weft accepts; this protects against crafted files. Real plans stay far below."},
	{InvalidPlan, BadInput, "launch plan breaks a rule", "The plan reads well but breaks a rule of its verifier; the message gives the rule's number, which ir/plan/verify.go explains. In a plan that `weft compile` just made this is a bug of weft."},
	{PlanMismatch, BadInput, "launch plan does not fit its artifact", "A plan of the artifact names a state that the manifest does not have, or has with another type, or kernels that the artifact lacks. The artifact was put together by hand or is damaged: compile again."},
	{RanksDisagree, BadInput, "ranks would wait for each other", "Ranks of the mesh would not all issue the same collectives in the same order, so that some wait for ever. The notes are a counter-example: which ranks wait for what, at which step of the plan. Collectives inside an if or a while need a decision that is the same on all ranks that take part: make it from what all_reduce or all_gather gives."},
	{PlanMemory, BadInput, "plan needs more memory than there is", "What a rank holds at once (states, inputs, outputs and scratch memory) is more than --memory-limit, or than the target's memory where a mesh is given. For one rank without a limit this is a warning. Divide more (fsdp, tp), use a narrower type, bound the dims, or give the memory of the GPUs with --memory-limit."},
}
