; The kernels of the session's tests. One thread computes one element.
target triple = "nvptx64-nvidia-cuda"

declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ntid.x()

; c = a + b, n elements
define void @add(ptr addrspace(1) %a, ptr addrspace(1) %b, ptr addrspace(1) %c, i32 %n) {
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %b0 = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %t0 = call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
  %o = mul i32 %b0, %t0
  %i = add i32 %o, %t
  %in = icmp slt i32 %i, %n
  br i1 %in, label %do, label %end
do:
  %pa = getelementptr float, ptr addrspace(1) %a, i32 %i
  %pb = getelementptr float, ptr addrspace(1) %b, i32 %i
  %pc = getelementptr float, ptr addrspace(1) %c, i32 %i
  %x = load float, ptr addrspace(1) %pa
  %y = load float, ptr addrspace(1) %pb
  %z = fadd float %x, %y
  store float %z, ptr addrspace(1) %pc
  br label %end
end:
  ret void
}

; y[i] = x[i] * w[i mod k], n elements
define void @scale(ptr addrspace(1) %x, ptr addrspace(1) %w, ptr addrspace(1) %y, i64 %n, i64 %k) {
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %b0 = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %t0 = call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
  %o = mul i32 %b0, %t0
  %i32 = add i32 %o, %t
  %i = zext i32 %i32 to i64
  %in = icmp slt i64 %i, %n
  br i1 %in, label %do, label %end
do:
  %m = urem i64 %i, %k
  %px = getelementptr float, ptr addrspace(1) %x, i64 %i
  %pw = getelementptr float, ptr addrspace(1) %w, i64 %m
  %py = getelementptr float, ptr addrspace(1) %y, i64 %i
  %a = load float, ptr addrspace(1) %px
  %b = load float, ptr addrspace(1) %pw
  %c = fmul float %a, %b
  store float %c, ptr addrspace(1) %py
  br label %end
end:
  ret void
}

; x = 2 * x in place, n elements
define void @double(ptr addrspace(1) %x, i64 %n) {
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %b0 = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %t0 = call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
  %o = mul i32 %b0, %t0
  %i32 = add i32 %o, %t
  %i = zext i32 %i32 to i64
  %in = icmp slt i64 %i, %n
  br i1 %in, label %do, label %end
do:
  %p = getelementptr float, ptr addrspace(1) %x, i64 %i
  %a = load float, ptr addrspace(1) %p
  %b = fadd float %a, %a
  store float %b, ptr addrspace(1) %p
  br label %end
end:
  ret void
}

; a fault: one element past x
define void @beyond(ptr addrspace(1) %x, i64 %n) {
  %p = getelementptr float, ptr addrspace(1) %x, i64 %n
  store float 1.0, ptr addrspace(1) %p
  ret void
}

!nvvm.annotations = !{!0, !1, !2, !3}
!0 = !{ptr @add, !"kernel", i32 1}
!1 = !{ptr @scale, !"kernel", i32 1}
!2 = !{ptr @double, !"kernel", i32 1}
!3 = !{ptr @beyond, !"kernel", i32 1}
