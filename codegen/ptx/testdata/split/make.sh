#!/bin/sh
# Compiles each kernel alone (NAME.ptx) and all of them together (all.ptx).
set -e
cd "$(dirname "$0")"
annotate='attributes #0 = { "target-cpu"="sm_90a" }
!nvvm.annotations = !{!0}
!0 = !{ptr @%s, !"maxntidx", i32 128}
'
compile() { llc-19 -march=nvptx64 -mcpu=sm_90a -O3 -nvptx-fma-level=0 -fp-contract=off - -o "$1.ptx"; }
plain='attributes #0 = { "target-cpu"="sm_90a" }'
{ cat common.inc zeta.inc; echo "$plain"; } | compile zeta
{ cat common.inc alpha.inc; echo "$plain"; } | compile alpha
{ cat common.inc mu.inc; printf "$annotate" mu; } | compile mu
{ cat common.inc zeta.inc alpha.inc mu.inc; printf "$annotate" mu; } | compile all
