package diag

// Codes of meshes, shardings and ranks.
const (
	BadMesh          Code = "W4100"
	BadParallel      Code = "W4101"
	NoSuchParameter  Code = "W4102"
	ShardingConflict Code = "W4103"
	BadConfig        Code = "W4104"
	NotSharded       Code = "W4105"
	ChosenParallel   Code = "W4106"
	BadPrecision     Code = "W4110"
	NothingNarrowed  Code = "W4111"
	WrongRanks       Code = "W7100"
	CollectiveStuck  Code = "W7101"
	PeerDiffers      Code = "W7102"
	NoNCCL           Code = "W7103"
	Rendezvous       Code = "W7104"
	RankFailed       Code = "W7105"
)

var parallelCodes = []Info{
	{BadMesh, BadInput, "mesh cannot be read", "A mesh is a list of named axes and their sizes, such as --mesh dp=8,tp=4. Names are letters, digits and _, each once; sizes are 1 or more."},
	{BadParallel, BadInput, "parallelism cannot be read", "--parallel gives each mesh axis a strategy: ddp, zero1, zero2, fsdp, hsdp (over two axes), tp, tp+sp or ep, as in --mesh dp=8,tp=4 --parallel dp:fsdp,tp:tp+sp."},
	{NoSuchParameter, BadInput, "pattern matches no parameter", "A sharding or precision rule names parameters or modules by a pattern that matches none. The message has the nearest names; `weft inspect` lists all of them."},
	{ShardingConflict, BadInput, "shardings contradict each other", "Two rules, or a rule and a strategy, divide one tensor in different ways, or one axis divides a tensor twice. The message names both."},
	{BadConfig, BadInput, "configuration cannot be read", "weft.yaml has a key that weft does not know, or a value of the wrong kind. The message has the place and the nearest keys."},
	{NotSharded, BadInput, "nothing to divide", "A strategy found nothing in the program that its axis could divide, and the ranks along that axis do the same work; or too little, and some ranks have nothing to do. This is a note unless warnings are errors."},
	{ChosenParallel, OK, "strategies were chosen", "--parallel auto partitioned the program with each combination of strategies and took the one that its cost model finds fastest among those that fit the memory of a rank. The notes have the others."},
	{BadPrecision, BadInput, "precision policy cannot be read", "--precision takes bf16, fp16, tf32 or f32, or parts: compute=bf16,params=f32,reduce=f32,output=f32, with exceptions for kinds of operators (op:attention=f32) and modules (lm_head=f32). docs/precision.md has them all."},
	{NothingNarrowed, OK, "precision policy changes nothing", "The program has no product of float32 to which the policy applies: it computes in other types already, or rules keep all products."},
	{WrongRanks, BadInput, "number of ranks is not the mesh's", "An artifact for a mesh runs on as many ranks as the mesh has: the launcher's WORLD_SIZE, --nproc, or ranks in one process must be that number."},
	{CollectiveStuck, RunFailed, "a collective did not finish in time", "Ranks waited longer than --comm-timeout for others. The report names the ranks that are missing, and the last finished and the pending steps of each."},
	{PeerDiffers, BadInput, "ranks run different artifacts", "Each rank shows the digest of its artifact when ranks meet. A rank with another one is refused: give all ranks the same file."},
	{NoNCCL, BadInput, "NCCL not found", "Collectives between GPUs need NVIDIA's NCCL (libnccl.so.2). Install it, or set WEFT_NCCL to the library. `weft doctor` shows what was found."},
	{Rendezvous, RunFailed, "ranks did not meet", "The ranks of a run meet at MASTER_ADDR:MASTER_PORT. The address was not reachable, or not all ranks came within the timeout. The message names those that are missing."},
	{RankFailed, RunFailed, "another rank failed", "This rank ended because another one reported an error or went away; its own report has the cause."},
}
