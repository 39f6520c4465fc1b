; Kernels of tensor-core and asynchronous-copy instructions, as inline assembly.
target triple = "nvptx64-nvidia-cuda"

@tile = internal addrspace(3) global [4096 x i8] undef, align 16
@stages = internal addrspace(3) global [16384 x i8] undef, align 128

declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare void @llvm.nvvm.barrier0()

define ptx_kernel void @mma_bf16(ptr addrspace(1) %a, ptr addrspace(1) %b, ptr addrspace(1) %c, ptr addrspace(1) %d) {
  %v1 = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %v2 = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %v3 = mul i32 %v2, 32
  %v4 = add i32 %v3, %v1
  %v5 = getelementptr <4 x i32>, ptr addrspace(1) %a, i32 %v4
  %v6 = load <4 x i32>, ptr addrspace(1) %v5, align 16
  %v7 = extractelement <4 x i32> %v6, i32 0
  %v8 = extractelement <4 x i32> %v6, i32 1
  %v9 = extractelement <4 x i32> %v6, i32 2
  %v10 = extractelement <4 x i32> %v6, i32 3
  %v11 = getelementptr <2 x i32>, ptr addrspace(1) %b, i32 %v4
  %v12 = load <2 x i32>, ptr addrspace(1) %v11, align 8
  %v13 = extractelement <2 x i32> %v12, i32 0
  %v14 = extractelement <2 x i32> %v12, i32 1
  %v15 = getelementptr <4 x float>, ptr addrspace(1) %c, i32 %v4
  %v16 = load <4 x float>, ptr addrspace(1) %v15, align 16
  %v17 = extractelement <4 x float> %v16, i32 0
  %v18 = extractelement <4 x float> %v16, i32 1
  %v19 = extractelement <4 x float> %v16, i32 2
  %v20 = extractelement <4 x float> %v16, i32 3
  %v21 = call {float, float, float, float} asm "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {$0, $1, $2, $3}, {$4, $5, $6, $7}, {$8, $9}, {$10, $11, $12, $13};", "=f,=f,=f,=f,r,r,r,r,r,r,f,f,f,f"(i32 %v7, i32 %v8, i32 %v9, i32 %v10, i32 %v13, i32 %v14, float %v17, float %v18, float %v19, float %v20) #0
  %v22 = extractvalue {float, float, float, float} %v21, 0
  %v23 = extractvalue {float, float, float, float} %v21, 1
  %v24 = extractvalue {float, float, float, float} %v21, 2
  %v25 = extractvalue {float, float, float, float} %v21, 3
  %v26 = getelementptr <4 x i32>, ptr addrspace(1) %d, i32 %v4
  %v27 = getelementptr i32, ptr addrspace(1) %v26, i32 0
  store float %v22, ptr addrspace(1) %v27, align 4
  %v28 = getelementptr <4 x i32>, ptr addrspace(1) %d, i32 %v4
  %v29 = getelementptr i32, ptr addrspace(1) %v28, i32 1
  store float %v23, ptr addrspace(1) %v29, align 4
  %v30 = getelementptr <4 x i32>, ptr addrspace(1) %d, i32 %v4
  %v31 = getelementptr i32, ptr addrspace(1) %v30, i32 2
  store float %v24, ptr addrspace(1) %v31, align 4
  %v32 = getelementptr <4 x i32>, ptr addrspace(1) %d, i32 %v4
  %v33 = getelementptr i32, ptr addrspace(1) %v32, i32 3
  store float %v25, ptr addrspace(1) %v33, align 4
  ret void
}

define ptx_kernel void @mma_f16(ptr addrspace(1) %a, ptr addrspace(1) %b, ptr addrspace(1) %c, ptr addrspace(1) %d) {
  %v1 = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %v2 = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %v3 = mul i32 %v2, 32
  %v4 = add i32 %v3, %v1
  %v5 = getelementptr <4 x i32>, ptr addrspace(1) %a, i32 %v4
  %v6 = load <4 x i32>, ptr addrspace(1) %v5, align 16
  %v7 = extractelement <4 x i32> %v6, i32 0
  %v8 = extractelement <4 x i32> %v6, i32 1
  %v9 = extractelement <4 x i32> %v6, i32 2
  %v10 = extractelement <4 x i32> %v6, i32 3
  %v11 = getelementptr <2 x i32>, ptr addrspace(1) %b, i32 %v4
  %v12 = load <2 x i32>, ptr addrspace(1) %v11, align 8
  %v13 = extractelement <2 x i32> %v12, i32 0
  %v14 = extractelement <2 x i32> %v12, i32 1
  %v15 = getelementptr <4 x float>, ptr addrspace(1) %c, i32 %v4
  %v16 = load <4 x float>, ptr addrspace(1) %v15, align 16
  %v17 = extractelement <4 x float> %v16, i32 0
  %v18 = extractelement <4 x float> %v16, i32 1
  %v19 = extractelement <4 x float> %v16, i32 2
  %v20 = extractelement <4 x float> %v16, i32 3
  %v21 = call {float, float, float, float} asm "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {$0, $1, $2, $3}, {$4, $5, $6, $7}, {$8, $9}, {$10, $11, $12, $13};", "=f,=f,=f,=f,r,r,r,r,r,r,f,f,f,f"(i32 %v7, i32 %v8, i32 %v9, i32 %v10, i32 %v13, i32 %v14, float %v17, float %v18, float %v19, float %v20) #0
  %v22 = extractvalue {float, float, float, float} %v21, 0
  %v23 = extractvalue {float, float, float, float} %v21, 1
  %v24 = extractvalue {float, float, float, float} %v21, 2
  %v25 = extractvalue {float, float, float, float} %v21, 3
  %v26 = getelementptr <4 x i32>, ptr addrspace(1) %d, i32 %v4
  %v27 = getelementptr i32, ptr addrspace(1) %v26, i32 0
  store float %v22, ptr addrspace(1) %v27, align 4
  %v28 = getelementptr <4 x i32>, ptr addrspace(1) %d, i32 %v4
  %v29 = getelementptr i32, ptr addrspace(1) %v28, i32 1
  store float %v23, ptr addrspace(1) %v29, align 4
  %v30 = getelementptr <4 x i32>, ptr addrspace(1) %d, i32 %v4
  %v31 = getelementptr i32, ptr addrspace(1) %v30, i32 2
  store float %v24, ptr addrspace(1) %v31, align 4
  %v32 = getelementptr <4 x i32>, ptr addrspace(1) %d, i32 %v4
  %v33 = getelementptr i32, ptr addrspace(1) %v32, i32 3
  store float %v25, ptr addrspace(1) %v33, align 4
  ret void
}

define ptx_kernel void @mma_tf32(ptr addrspace(1) %a, ptr addrspace(1) %b, ptr addrspace(1) %c, ptr addrspace(1) %d) {
  %v1 = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %v2 = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %v3 = mul i32 %v2, 32
  %v4 = add i32 %v3, %v1
  %v5 = getelementptr <4 x i32>, ptr addrspace(1) %a, i32 %v4
  %v6 = load <4 x i32>, ptr addrspace(1) %v5, align 16
  %v7 = extractelement <4 x i32> %v6, i32 0
  %v8 = extractelement <4 x i32> %v6, i32 1
  %v9 = extractelement <4 x i32> %v6, i32 2
  %v10 = extractelement <4 x i32> %v6, i32 3
  %v11 = getelementptr <2 x i32>, ptr addrspace(1) %b, i32 %v4
  %v12 = load <2 x i32>, ptr addrspace(1) %v11, align 8
  %v13 = extractelement <2 x i32> %v12, i32 0
  %v14 = extractelement <2 x i32> %v12, i32 1
  %v15 = getelementptr <4 x float>, ptr addrspace(1) %c, i32 %v4
  %v16 = load <4 x float>, ptr addrspace(1) %v15, align 16
  %v17 = extractelement <4 x float> %v16, i32 0
  %v18 = extractelement <4 x float> %v16, i32 1
  %v19 = extractelement <4 x float> %v16, i32 2
  %v20 = extractelement <4 x float> %v16, i32 3
  %v21 = call {float, float, float, float} asm "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {$0, $1, $2, $3}, {$4, $5, $6, $7}, {$8, $9}, {$10, $11, $12, $13};", "=f,=f,=f,=f,r,r,r,r,r,r,f,f,f,f"(i32 %v7, i32 %v8, i32 %v9, i32 %v10, i32 %v13, i32 %v14, float %v17, float %v18, float %v19, float %v20) #0
  %v22 = extractvalue {float, float, float, float} %v21, 0
  %v23 = extractvalue {float, float, float, float} %v21, 1
  %v24 = extractvalue {float, float, float, float} %v21, 2
  %v25 = extractvalue {float, float, float, float} %v21, 3
  %v26 = getelementptr <4 x i32>, ptr addrspace(1) %d, i32 %v4
  %v27 = getelementptr i32, ptr addrspace(1) %v26, i32 0
  store float %v22, ptr addrspace(1) %v27, align 4
  %v28 = getelementptr <4 x i32>, ptr addrspace(1) %d, i32 %v4
  %v29 = getelementptr i32, ptr addrspace(1) %v28, i32 1
  store float %v23, ptr addrspace(1) %v29, align 4
  %v30 = getelementptr <4 x i32>, ptr addrspace(1) %d, i32 %v4
  %v31 = getelementptr i32, ptr addrspace(1) %v30, i32 2
  store float %v24, ptr addrspace(1) %v31, align 4
  %v32 = getelementptr <4 x i32>, ptr addrspace(1) %d, i32 %v4
  %v33 = getelementptr i32, ptr addrspace(1) %v32, i32 3
  store float %v25, ptr addrspace(1) %v33, align 4
  ret void
}

define ptx_kernel void @mma_s8(ptr addrspace(1) %a, ptr addrspace(1) %b, ptr addrspace(1) %c, ptr addrspace(1) %d) {
  %v1 = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %v2 = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %v3 = mul i32 %v2, 32
  %v4 = add i32 %v3, %v1
  %v5 = getelementptr <4 x i32>, ptr addrspace(1) %a, i32 %v4
  %v6 = load <4 x i32>, ptr addrspace(1) %v5, align 16
  %v7 = extractelement <4 x i32> %v6, i32 0
  %v8 = extractelement <4 x i32> %v6, i32 1
  %v9 = extractelement <4 x i32> %v6, i32 2
  %v10 = extractelement <4 x i32> %v6, i32 3
  %v11 = getelementptr <2 x i32>, ptr addrspace(1) %b, i32 %v4
  %v12 = load <2 x i32>, ptr addrspace(1) %v11, align 8
  %v13 = extractelement <2 x i32> %v12, i32 0
  %v14 = extractelement <2 x i32> %v12, i32 1
  %v15 = getelementptr <4 x i32>, ptr addrspace(1) %c, i32 %v4
  %v16 = load <4 x i32>, ptr addrspace(1) %v15, align 16
  %v17 = extractelement <4 x i32> %v16, i32 0
  %v18 = extractelement <4 x i32> %v16, i32 1
  %v19 = extractelement <4 x i32> %v16, i32 2
  %v20 = extractelement <4 x i32> %v16, i32 3
  %v21 = call {i32, i32, i32, i32} asm "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {$0, $1, $2, $3}, {$4, $5, $6, $7}, {$8, $9}, {$10, $11, $12, $13};", "=r,=r,=r,=r,r,r,r,r,r,r,r,r,r,r"(i32 %v7, i32 %v8, i32 %v9, i32 %v10, i32 %v13, i32 %v14, i32 %v17, i32 %v18, i32 %v19, i32 %v20) #0
  %v22 = extractvalue {i32, i32, i32, i32} %v21, 0
  %v23 = extractvalue {i32, i32, i32, i32} %v21, 1
  %v24 = extractvalue {i32, i32, i32, i32} %v21, 2
  %v25 = extractvalue {i32, i32, i32, i32} %v21, 3
  %v26 = getelementptr <4 x i32>, ptr addrspace(1) %d, i32 %v4
  %v27 = getelementptr i32, ptr addrspace(1) %v26, i32 0
  store i32 %v22, ptr addrspace(1) %v27, align 4
  %v28 = getelementptr <4 x i32>, ptr addrspace(1) %d, i32 %v4
  %v29 = getelementptr i32, ptr addrspace(1) %v28, i32 1
  store i32 %v23, ptr addrspace(1) %v29, align 4
  %v30 = getelementptr <4 x i32>, ptr addrspace(1) %d, i32 %v4
  %v31 = getelementptr i32, ptr addrspace(1) %v30, i32 2
  store i32 %v24, ptr addrspace(1) %v31, align 4
  %v32 = getelementptr <4 x i32>, ptr addrspace(1) %d, i32 %v4
  %v33 = getelementptr i32, ptr addrspace(1) %v32, i32 3
  store i32 %v25, ptr addrspace(1) %v33, align 4
  ret void
}

define ptx_kernel void @ldmatrix_x1(ptr addrspace(1) %data, ptr addrspace(1) %offsets, ptr addrspace(1) %out) {
  %v1 = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %v2 = add i32 %v1, 0
  %v3 = getelementptr <4 x i32>, ptr addrspace(1) %data, i32 %v2
  %v4 = load <4 x i32>, ptr addrspace(1) %v3, align 16
  %v5 = getelementptr <4 x i32>, ptr addrspace(3) @tile, i32 %v2
  store <4 x i32> %v4, ptr addrspace(3) %v5, align 16
  %v6 = add i32 %v1, 32
  %v7 = getelementptr <4 x i32>, ptr addrspace(1) %data, i32 %v6
  %v8 = load <4 x i32>, ptr addrspace(1) %v7, align 16
  %v9 = getelementptr <4 x i32>, ptr addrspace(3) @tile, i32 %v6
  store <4 x i32> %v8, ptr addrspace(3) %v9, align 16
  %v10 = add i32 %v1, 64
  %v11 = getelementptr <4 x i32>, ptr addrspace(1) %data, i32 %v10
  %v12 = load <4 x i32>, ptr addrspace(1) %v11, align 16
  %v13 = getelementptr <4 x i32>, ptr addrspace(3) @tile, i32 %v10
  store <4 x i32> %v12, ptr addrspace(3) %v13, align 16
  %v14 = add i32 %v1, 96
  %v15 = getelementptr <4 x i32>, ptr addrspace(1) %data, i32 %v14
  %v16 = load <4 x i32>, ptr addrspace(1) %v15, align 16
  %v17 = getelementptr <4 x i32>, ptr addrspace(3) @tile, i32 %v14
  store <4 x i32> %v16, ptr addrspace(3) %v17, align 16
  call void @llvm.nvvm.barrier0()
  %v18 = getelementptr i32, ptr addrspace(1) %offsets, i32 %v1
  %v19 = load i32, ptr addrspace(1) %v18, align 4
  %v20 = ptrtoint ptr addrspace(3) @tile to i32
  %v21 = add i32 %v20, %v19
  %v22 = call i32 asm sideeffect "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {$0}, [$1];", "=r,r,~{memory}"(i32 %v21) #0
  %v23 = getelementptr <4 x i32>, ptr addrspace(1) %out, i32 %v1
  %v24 = getelementptr i32, ptr addrspace(1) %v23, i32 0
  store i32 %v22, ptr addrspace(1) %v24, align 4
  ret void
}

define ptx_kernel void @ldmatrix_x1_trans(ptr addrspace(1) %data, ptr addrspace(1) %offsets, ptr addrspace(1) %out) {
  %v1 = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %v2 = add i32 %v1, 0
  %v3 = getelementptr <4 x i32>, ptr addrspace(1) %data, i32 %v2
  %v4 = load <4 x i32>, ptr addrspace(1) %v3, align 16
  %v5 = getelementptr <4 x i32>, ptr addrspace(3) @tile, i32 %v2
  store <4 x i32> %v4, ptr addrspace(3) %v5, align 16
  %v6 = add i32 %v1, 32
  %v7 = getelementptr <4 x i32>, ptr addrspace(1) %data, i32 %v6
  %v8 = load <4 x i32>, ptr addrspace(1) %v7, align 16
  %v9 = getelementptr <4 x i32>, ptr addrspace(3) @tile, i32 %v6
  store <4 x i32> %v8, ptr addrspace(3) %v9, align 16
  %v10 = add i32 %v1, 64
  %v11 = getelementptr <4 x i32>, ptr addrspace(1) %data, i32 %v10
  %v12 = load <4 x i32>, ptr addrspace(1) %v11, align 16
  %v13 = getelementptr <4 x i32>, ptr addrspace(3) @tile, i32 %v10
  store <4 x i32> %v12, ptr addrspace(3) %v13, align 16
  %v14 = add i32 %v1, 96
  %v15 = getelementptr <4 x i32>, ptr addrspace(1) %data, i32 %v14
  %v16 = load <4 x i32>, ptr addrspace(1) %v15, align 16
  %v17 = getelementptr <4 x i32>, ptr addrspace(3) @tile, i32 %v14
  store <4 x i32> %v16, ptr addrspace(3) %v17, align 16
  call void @llvm.nvvm.barrier0()
  %v18 = getelementptr i32, ptr addrspace(1) %offsets, i32 %v1
  %v19 = load i32, ptr addrspace(1) %v18, align 4
  %v20 = ptrtoint ptr addrspace(3) @tile to i32
  %v21 = add i32 %v20, %v19
  %v22 = call i32 asm sideeffect "ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {$0}, [$1];", "=r,r,~{memory}"(i32 %v21) #0
  %v23 = getelementptr <4 x i32>, ptr addrspace(1) %out, i32 %v1
  %v24 = getelementptr i32, ptr addrspace(1) %v23, i32 0
  store i32 %v22, ptr addrspace(1) %v24, align 4
  ret void
}

define ptx_kernel void @ldmatrix_x2(ptr addrspace(1) %data, ptr addrspace(1) %offsets, ptr addrspace(1) %out) {
  %v1 = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %v2 = add i32 %v1, 0
  %v3 = getelementptr <4 x i32>, ptr addrspace(1) %data, i32 %v2
  %v4 = load <4 x i32>, ptr addrspace(1) %v3, align 16
  %v5 = getelementptr <4 x i32>, ptr addrspace(3) @tile, i32 %v2
  store <4 x i32> %v4, ptr addrspace(3) %v5, align 16
  %v6 = add i32 %v1, 32
  %v7 = getelementptr <4 x i32>, ptr addrspace(1) %data, i32 %v6
  %v8 = load <4 x i32>, ptr addrspace(1) %v7, align 16
  %v9 = getelementptr <4 x i32>, ptr addrspace(3) @tile, i32 %v6
  store <4 x i32> %v8, ptr addrspace(3) %v9, align 16
  %v10 = add i32 %v1, 64
  %v11 = getelementptr <4 x i32>, ptr addrspace(1) %data, i32 %v10
  %v12 = load <4 x i32>, ptr addrspace(1) %v11, align 16
  %v13 = getelementptr <4 x i32>, ptr addrspace(3) @tile, i32 %v10
  store <4 x i32> %v12, ptr addrspace(3) %v13, align 16
  %v14 = add i32 %v1, 96
  %v15 = getelementptr <4 x i32>, ptr addrspace(1) %data, i32 %v14
  %v16 = load <4 x i32>, ptr addrspace(1) %v15, align 16
  %v17 = getelementptr <4 x i32>, ptr addrspace(3) @tile, i32 %v14
  store <4 x i32> %v16, ptr addrspace(3) %v17, align 16
  call void @llvm.nvvm.barrier0()
  %v18 = getelementptr i32, ptr addrspace(1) %offsets, i32 %v1
  %v19 = load i32, ptr addrspace(1) %v18, align 4
  %v20 = ptrtoint ptr addrspace(3) @tile to i32
  %v21 = add i32 %v20, %v19
  %v22 = call {i32, i32} asm sideeffect "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {$0, $1}, [$2];", "=r,=r,r,~{memory}"(i32 %v21) #0
  %v23 = extractvalue {i32, i32} %v22, 0
  %v24 = extractvalue {i32, i32} %v22, 1
  %v25 = getelementptr <4 x i32>, ptr addrspace(1) %out, i32 %v1
  %v26 = getelementptr i32, ptr addrspace(1) %v25, i32 0
  store i32 %v23, ptr addrspace(1) %v26, align 4
  %v27 = getelementptr <4 x i32>, ptr addrspace(1) %out, i32 %v1
  %v28 = getelementptr i32, ptr addrspace(1) %v27, i32 1
  store i32 %v24, ptr addrspace(1) %v28, align 4
  ret void
}

define ptx_kernel void @ldmatrix_x2_trans(ptr addrspace(1) %data, ptr addrspace(1) %offsets, ptr addrspace(1) %out) {
  %v1 = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %v2 = add i32 %v1, 0
  %v3 = getelementptr <4 x i32>, ptr addrspace(1) %data, i32 %v2
  %v4 = load <4 x i32>, ptr addrspace(1) %v3, align 16
  %v5 = getelementptr <4 x i32>, ptr addrspace(3) @tile, i32 %v2
  store <4 x i32> %v4, ptr addrspace(3) %v5, align 16
  %v6 = add i32 %v1, 32
  %v7 = getelementptr <4 x i32>, ptr addrspace(1) %data, i32 %v6
  %v8 = load <4 x i32>, ptr addrspace(1) %v7, align 16
  %v9 = getelementptr <4 x i32>, ptr addrspace(3) @tile, i32 %v6
  store <4 x i32> %v8, ptr addrspace(3) %v9, align 16
  %v10 = add i32 %v1, 64
  %v11 = getelementptr <4 x i32>, ptr addrspace(1) %data, i32 %v10
  %v12 = load <4 x i32>, ptr addrspace(1) %v11, align 16
  %v13 = getelementptr <4 x i32>, ptr addrspace(3) @tile, i32 %v10
  store <4 x i32> %v12, ptr addrspace(3) %v13, align 16
  %v14 = add i32 %v1, 96
  %v15 = getelementptr <4 x i32>, ptr addrspace(1) %data, i32 %v14
  %v16 = load <4 x i32>, ptr addrspace(1) %v15, align 16
  %v17 = getelementptr <4 x i32>, ptr addrspace(3) @tile, i32 %v14
  store <4 x i32> %v16, ptr addrspace(3) %v17, align 16
  call void @llvm.nvvm.barrier0()
  %v18 = getelementptr i32, ptr addrspace(1) %offsets, i32 %v1
  %v19 = load i32, ptr addrspace(1) %v18, align 4
  %v20 = ptrtoint ptr addrspace(3) @tile to i32
  %v21 = add i32 %v20, %v19
  %v22 = call {i32, i32} asm sideeffect "ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {$0, $1}, [$2];", "=r,=r,r,~{memory}"(i32 %v21) #0
  %v23 = extractvalue {i32, i32} %v22, 0
  %v24 = extractvalue {i32, i32} %v22, 1
  %v25 = getelementptr <4 x i32>, ptr addrspace(1) %out, i32 %v1
  %v26 = getelementptr i32, ptr addrspace(1) %v25, i32 0
  store i32 %v23, ptr addrspace(1) %v26, align 4
  %v27 = getelementptr <4 x i32>, ptr addrspace(1) %out, i32 %v1
  %v28 = getelementptr i32, ptr addrspace(1) %v27, i32 1
  store i32 %v24, ptr addrspace(1) %v28, align 4
  ret void
}

define ptx_kernel void @ldmatrix_x4(ptr addrspace(1) %data, ptr addrspace(1) %offsets, ptr addrspace(1) %out) {
  %v1 = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %v2 = add i32 %v1, 0
  %v3 = getelementptr <4 x i32>, ptr addrspace(1) %data, i32 %v2
  %v4 = load <4 x i32>, ptr addrspace(1) %v3, align 16
  %v5 = getelementptr <4 x i32>, ptr addrspace(3) @tile, i32 %v2
  store <4 x i32> %v4, ptr addrspace(3) %v5, align 16
  %v6 = add i32 %v1, 32
  %v7 = getelementptr <4 x i32>, ptr addrspace(1) %data, i32 %v6
  %v8 = load <4 x i32>, ptr addrspace(1) %v7, align 16
  %v9 = getelementptr <4 x i32>, ptr addrspace(3) @tile, i32 %v6
  store <4 x i32> %v8, ptr addrspace(3) %v9, align 16
  %v10 = add i32 %v1, 64
  %v11 = getelementptr <4 x i32>, ptr addrspace(1) %data, i32 %v10
  %v12 = load <4 x i32>, ptr addrspace(1) %v11, align 16
  %v13 = getelementptr <4 x i32>, ptr addrspace(3) @tile, i32 %v10
  store <4 x i32> %v12, ptr addrspace(3) %v13, align 16
  %v14 = add i32 %v1, 96
  %v15 = getelementptr <4 x i32>, ptr addrspace(1) %data, i32 %v14
  %v16 = load <4 x i32>, ptr addrspace(1) %v15, align 16
  %v17 = getelementptr <4 x i32>, ptr addrspace(3) @tile, i32 %v14
  store <4 x i32> %v16, ptr addrspace(3) %v17, align 16
  call void @llvm.nvvm.barrier0()
  %v18 = getelementptr i32, ptr addrspace(1) %offsets, i32 %v1
  %v19 = load i32, ptr addrspace(1) %v18, align 4
  %v20 = ptrtoint ptr addrspace(3) @tile to i32
  %v21 = add i32 %v20, %v19
  %v22 = call {i32, i32, i32, i32} asm sideeffect "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {$0, $1, $2, $3}, [$4];", "=r,=r,=r,=r,r,~{memory}"(i32 %v21) #0
  %v23 = extractvalue {i32, i32, i32, i32} %v22, 0
  %v24 = extractvalue {i32, i32, i32, i32} %v22, 1
  %v25 = extractvalue {i32, i32, i32, i32} %v22, 2
  %v26 = extractvalue {i32, i32, i32, i32} %v22, 3
  %v27 = getelementptr <4 x i32>, ptr addrspace(1) %out, i32 %v1
  %v28 = getelementptr i32, ptr addrspace(1) %v27, i32 0
  store i32 %v23, ptr addrspace(1) %v28, align 4
  %v29 = getelementptr <4 x i32>, ptr addrspace(1) %out, i32 %v1
  %v30 = getelementptr i32, ptr addrspace(1) %v29, i32 1
  store i32 %v24, ptr addrspace(1) %v30, align 4
  %v31 = getelementptr <4 x i32>, ptr addrspace(1) %out, i32 %v1
  %v32 = getelementptr i32, ptr addrspace(1) %v31, i32 2
  store i32 %v25, ptr addrspace(1) %v32, align 4
  %v33 = getelementptr <4 x i32>, ptr addrspace(1) %out, i32 %v1
  %v34 = getelementptr i32, ptr addrspace(1) %v33, i32 3
  store i32 %v26, ptr addrspace(1) %v34, align 4
  ret void
}

define ptx_kernel void @ldmatrix_x4_trans(ptr addrspace(1) %data, ptr addrspace(1) %offsets, ptr addrspace(1) %out) {
  %v1 = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %v2 = add i32 %v1, 0
  %v3 = getelementptr <4 x i32>, ptr addrspace(1) %data, i32 %v2
  %v4 = load <4 x i32>, ptr addrspace(1) %v3, align 16
  %v5 = getelementptr <4 x i32>, ptr addrspace(3) @tile, i32 %v2
  store <4 x i32> %v4, ptr addrspace(3) %v5, align 16
  %v6 = add i32 %v1, 32
  %v7 = getelementptr <4 x i32>, ptr addrspace(1) %data, i32 %v6
  %v8 = load <4 x i32>, ptr addrspace(1) %v7, align 16
  %v9 = getelementptr <4 x i32>, ptr addrspace(3) @tile, i32 %v6
  store <4 x i32> %v8, ptr addrspace(3) %v9, align 16
  %v10 = add i32 %v1, 64
  %v11 = getelementptr <4 x i32>, ptr addrspace(1) %data, i32 %v10
  %v12 = load <4 x i32>, ptr addrspace(1) %v11, align 16
  %v13 = getelementptr <4 x i32>, ptr addrspace(3) @tile, i32 %v10
  store <4 x i32> %v12, ptr addrspace(3) %v13, align 16
  %v14 = add i32 %v1, 96
  %v15 = getelementptr <4 x i32>, ptr addrspace(1) %data, i32 %v14
  %v16 = load <4 x i32>, ptr addrspace(1) %v15, align 16
  %v17 = getelementptr <4 x i32>, ptr addrspace(3) @tile, i32 %v14
  store <4 x i32> %v16, ptr addrspace(3) %v17, align 16
  call void @llvm.nvvm.barrier0()
  %v18 = getelementptr i32, ptr addrspace(1) %offsets, i32 %v1
  %v19 = load i32, ptr addrspace(1) %v18, align 4
  %v20 = ptrtoint ptr addrspace(3) @tile to i32
  %v21 = add i32 %v20, %v19
  %v22 = call {i32, i32, i32, i32} asm sideeffect "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {$0, $1, $2, $3}, [$4];", "=r,=r,=r,=r,r,~{memory}"(i32 %v21) #0
  %v23 = extractvalue {i32, i32, i32, i32} %v22, 0
  %v24 = extractvalue {i32, i32, i32, i32} %v22, 1
  %v25 = extractvalue {i32, i32, i32, i32} %v22, 2
  %v26 = extractvalue {i32, i32, i32, i32} %v22, 3
  %v27 = getelementptr <4 x i32>, ptr addrspace(1) %out, i32 %v1
  %v28 = getelementptr i32, ptr addrspace(1) %v27, i32 0
  store i32 %v23, ptr addrspace(1) %v28, align 4
  %v29 = getelementptr <4 x i32>, ptr addrspace(1) %out, i32 %v1
  %v30 = getelementptr i32, ptr addrspace(1) %v29, i32 1
  store i32 %v24, ptr addrspace(1) %v30, align 4
  %v31 = getelementptr <4 x i32>, ptr addrspace(1) %out, i32 %v1
  %v32 = getelementptr i32, ptr addrspace(1) %v31, i32 2
  store i32 %v25, ptr addrspace(1) %v32, align 4
  %v33 = getelementptr <4 x i32>, ptr addrspace(1) %out, i32 %v1
  %v34 = getelementptr i32, ptr addrspace(1) %v33, i32 3
  store i32 %v26, ptr addrspace(1) %v34, align 4
  ret void
}

define ptx_kernel void @copy_ca_4(ptr addrspace(1) %from, ptr addrspace(1) %sizes, ptr addrspace(1) %out) {
  %v1 = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %v2 = mul i32 %v1, 4
  %v3 = ptrtoint ptr addrspace(3) @tile to i32
  %v4 = add i32 %v3, %v2
  %v5 = getelementptr i8, ptr addrspace(1) %from, i32 %v2
  call void asm sideeffect "cp.async.ca.shared.global [$0], [$1], 4;", "r,l,~{memory}"(i32 %v4, ptr addrspace(1) %v5)
  %v6 = getelementptr i32, ptr addrspace(1) %sizes, i32 %v1
  %v7 = load i32, ptr addrspace(1) %v6, align 4
  %v8 = add i32 %v2, 2048
  %v9 = ptrtoint ptr addrspace(3) @tile to i32
  %v10 = add i32 %v9, %v8
  %v11 = getelementptr i8, ptr addrspace(1) %from, i32 %v2
  call void asm sideeffect "cp.async.ca.shared.global [$0], [$1], 4, $2;", "r,l,r,~{memory}"(i32 %v10, ptr addrspace(1) %v11, i32 %v7)
  call void asm sideeffect "cp.async.commit_group;", "~{memory}"()
  call void asm sideeffect "cp.async.wait_group $0;", "n,~{memory}"(i32 0)
  call void @llvm.nvvm.barrier0()
  %v12 = add i32 %v2, 0
  %v13 = getelementptr i8, ptr addrspace(3) @tile, i32 %v12
  %v14 = load i32, ptr addrspace(3) %v13, align 4
  %v15 = getelementptr i8, ptr addrspace(1) %out, i32 %v12
  store i32 %v14, ptr addrspace(1) %v15, align 4
  %v16 = add i32 %v2, 2048
  %v17 = getelementptr i8, ptr addrspace(3) @tile, i32 %v16
  %v18 = load i32, ptr addrspace(3) %v17, align 4
  %v19 = getelementptr i8, ptr addrspace(1) %out, i32 %v16
  store i32 %v18, ptr addrspace(1) %v19, align 4
  ret void
}

define ptx_kernel void @copy_ca_8(ptr addrspace(1) %from, ptr addrspace(1) %sizes, ptr addrspace(1) %out) {
  %v1 = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %v2 = mul i32 %v1, 8
  %v3 = ptrtoint ptr addrspace(3) @tile to i32
  %v4 = add i32 %v3, %v2
  %v5 = getelementptr i8, ptr addrspace(1) %from, i32 %v2
  call void asm sideeffect "cp.async.ca.shared.global [$0], [$1], 8;", "r,l,~{memory}"(i32 %v4, ptr addrspace(1) %v5)
  %v6 = getelementptr i32, ptr addrspace(1) %sizes, i32 %v1
  %v7 = load i32, ptr addrspace(1) %v6, align 4
  %v8 = add i32 %v2, 2048
  %v9 = ptrtoint ptr addrspace(3) @tile to i32
  %v10 = add i32 %v9, %v8
  %v11 = getelementptr i8, ptr addrspace(1) %from, i32 %v2
  call void asm sideeffect "cp.async.ca.shared.global [$0], [$1], 8, $2;", "r,l,r,~{memory}"(i32 %v10, ptr addrspace(1) %v11, i32 %v7)
  call void asm sideeffect "cp.async.commit_group;", "~{memory}"()
  call void asm sideeffect "cp.async.wait_group $0;", "n,~{memory}"(i32 0)
  call void @llvm.nvvm.barrier0()
  %v12 = add i32 %v2, 0
  %v13 = getelementptr i8, ptr addrspace(3) @tile, i32 %v12
  %v14 = load i32, ptr addrspace(3) %v13, align 4
  %v15 = getelementptr i8, ptr addrspace(1) %out, i32 %v12
  store i32 %v14, ptr addrspace(1) %v15, align 4
  %v16 = add i32 %v2, 4
  %v17 = getelementptr i8, ptr addrspace(3) @tile, i32 %v16
  %v18 = load i32, ptr addrspace(3) %v17, align 4
  %v19 = getelementptr i8, ptr addrspace(1) %out, i32 %v16
  store i32 %v18, ptr addrspace(1) %v19, align 4
  %v20 = add i32 %v2, 2048
  %v21 = getelementptr i8, ptr addrspace(3) @tile, i32 %v20
  %v22 = load i32, ptr addrspace(3) %v21, align 4
  %v23 = getelementptr i8, ptr addrspace(1) %out, i32 %v20
  store i32 %v22, ptr addrspace(1) %v23, align 4
  %v24 = add i32 %v2, 2052
  %v25 = getelementptr i8, ptr addrspace(3) @tile, i32 %v24
  %v26 = load i32, ptr addrspace(3) %v25, align 4
  %v27 = getelementptr i8, ptr addrspace(1) %out, i32 %v24
  store i32 %v26, ptr addrspace(1) %v27, align 4
  ret void
}

define ptx_kernel void @copy_ca_16(ptr addrspace(1) %from, ptr addrspace(1) %sizes, ptr addrspace(1) %out) {
  %v1 = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %v2 = mul i32 %v1, 16
  %v3 = ptrtoint ptr addrspace(3) @tile to i32
  %v4 = add i32 %v3, %v2
  %v5 = getelementptr i8, ptr addrspace(1) %from, i32 %v2
  call void asm sideeffect "cp.async.ca.shared.global [$0], [$1], 16;", "r,l,~{memory}"(i32 %v4, ptr addrspace(1) %v5)
  %v6 = getelementptr i32, ptr addrspace(1) %sizes, i32 %v1
  %v7 = load i32, ptr addrspace(1) %v6, align 4
  %v8 = add i32 %v2, 2048
  %v9 = ptrtoint ptr addrspace(3) @tile to i32
  %v10 = add i32 %v9, %v8
  %v11 = getelementptr i8, ptr addrspace(1) %from, i32 %v2
  call void asm sideeffect "cp.async.ca.shared.global [$0], [$1], 16, $2;", "r,l,r,~{memory}"(i32 %v10, ptr addrspace(1) %v11, i32 %v7)
  call void asm sideeffect "cp.async.commit_group;", "~{memory}"()
  call void asm sideeffect "cp.async.wait_group $0;", "n,~{memory}"(i32 0)
  call void @llvm.nvvm.barrier0()
  %v12 = add i32 %v2, 0
  %v13 = getelementptr i8, ptr addrspace(3) @tile, i32 %v12
  %v14 = load i32, ptr addrspace(3) %v13, align 4
  %v15 = getelementptr i8, ptr addrspace(1) %out, i32 %v12
  store i32 %v14, ptr addrspace(1) %v15, align 4
  %v16 = add i32 %v2, 4
  %v17 = getelementptr i8, ptr addrspace(3) @tile, i32 %v16
  %v18 = load i32, ptr addrspace(3) %v17, align 4
  %v19 = getelementptr i8, ptr addrspace(1) %out, i32 %v16
  store i32 %v18, ptr addrspace(1) %v19, align 4
  %v20 = add i32 %v2, 8
  %v21 = getelementptr i8, ptr addrspace(3) @tile, i32 %v20
  %v22 = load i32, ptr addrspace(3) %v21, align 4
  %v23 = getelementptr i8, ptr addrspace(1) %out, i32 %v20
  store i32 %v22, ptr addrspace(1) %v23, align 4
  %v24 = add i32 %v2, 12
  %v25 = getelementptr i8, ptr addrspace(3) @tile, i32 %v24
  %v26 = load i32, ptr addrspace(3) %v25, align 4
  %v27 = getelementptr i8, ptr addrspace(1) %out, i32 %v24
  store i32 %v26, ptr addrspace(1) %v27, align 4
  %v28 = add i32 %v2, 2048
  %v29 = getelementptr i8, ptr addrspace(3) @tile, i32 %v28
  %v30 = load i32, ptr addrspace(3) %v29, align 4
  %v31 = getelementptr i8, ptr addrspace(1) %out, i32 %v28
  store i32 %v30, ptr addrspace(1) %v31, align 4
  %v32 = add i32 %v2, 2052
  %v33 = getelementptr i8, ptr addrspace(3) @tile, i32 %v32
  %v34 = load i32, ptr addrspace(3) %v33, align 4
  %v35 = getelementptr i8, ptr addrspace(1) %out, i32 %v32
  store i32 %v34, ptr addrspace(1) %v35, align 4
  %v36 = add i32 %v2, 2056
  %v37 = getelementptr i8, ptr addrspace(3) @tile, i32 %v36
  %v38 = load i32, ptr addrspace(3) %v37, align 4
  %v39 = getelementptr i8, ptr addrspace(1) %out, i32 %v36
  store i32 %v38, ptr addrspace(1) %v39, align 4
  %v40 = add i32 %v2, 2060
  %v41 = getelementptr i8, ptr addrspace(3) @tile, i32 %v40
  %v42 = load i32, ptr addrspace(3) %v41, align 4
  %v43 = getelementptr i8, ptr addrspace(1) %out, i32 %v40
  store i32 %v42, ptr addrspace(1) %v43, align 4
  ret void
}

define ptx_kernel void @copy_cg_16(ptr addrspace(1) %from, ptr addrspace(1) %sizes, ptr addrspace(1) %out) {
  %v1 = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %v2 = mul i32 %v1, 16
  %v3 = ptrtoint ptr addrspace(3) @tile to i32
  %v4 = add i32 %v3, %v2
  %v5 = getelementptr i8, ptr addrspace(1) %from, i32 %v2
  call void asm sideeffect "cp.async.cg.shared.global [$0], [$1], 16;", "r,l,~{memory}"(i32 %v4, ptr addrspace(1) %v5)
  %v6 = getelementptr i32, ptr addrspace(1) %sizes, i32 %v1
  %v7 = load i32, ptr addrspace(1) %v6, align 4
  %v8 = add i32 %v2, 2048
  %v9 = ptrtoint ptr addrspace(3) @tile to i32
  %v10 = add i32 %v9, %v8
  %v11 = getelementptr i8, ptr addrspace(1) %from, i32 %v2
  call void asm sideeffect "cp.async.cg.shared.global [$0], [$1], 16, $2;", "r,l,r,~{memory}"(i32 %v10, ptr addrspace(1) %v11, i32 %v7)
  call void asm sideeffect "cp.async.commit_group;", "~{memory}"()
  call void asm sideeffect "cp.async.wait_group $0;", "n,~{memory}"(i32 0)
  call void @llvm.nvvm.barrier0()
  %v12 = add i32 %v2, 0
  %v13 = getelementptr i8, ptr addrspace(3) @tile, i32 %v12
  %v14 = load i32, ptr addrspace(3) %v13, align 4
  %v15 = getelementptr i8, ptr addrspace(1) %out, i32 %v12
  store i32 %v14, ptr addrspace(1) %v15, align 4
  %v16 = add i32 %v2, 4
  %v17 = getelementptr i8, ptr addrspace(3) @tile, i32 %v16
  %v18 = load i32, ptr addrspace(3) %v17, align 4
  %v19 = getelementptr i8, ptr addrspace(1) %out, i32 %v16
  store i32 %v18, ptr addrspace(1) %v19, align 4
  %v20 = add i32 %v2, 8
  %v21 = getelementptr i8, ptr addrspace(3) @tile, i32 %v20
  %v22 = load i32, ptr addrspace(3) %v21, align 4
  %v23 = getelementptr i8, ptr addrspace(1) %out, i32 %v20
  store i32 %v22, ptr addrspace(1) %v23, align 4
  %v24 = add i32 %v2, 12
  %v25 = getelementptr i8, ptr addrspace(3) @tile, i32 %v24
  %v26 = load i32, ptr addrspace(3) %v25, align 4
  %v27 = getelementptr i8, ptr addrspace(1) %out, i32 %v24
  store i32 %v26, ptr addrspace(1) %v27, align 4
  %v28 = add i32 %v2, 2048
  %v29 = getelementptr i8, ptr addrspace(3) @tile, i32 %v28
  %v30 = load i32, ptr addrspace(3) %v29, align 4
  %v31 = getelementptr i8, ptr addrspace(1) %out, i32 %v28
  store i32 %v30, ptr addrspace(1) %v31, align 4
  %v32 = add i32 %v2, 2052
  %v33 = getelementptr i8, ptr addrspace(3) @tile, i32 %v32
  %v34 = load i32, ptr addrspace(3) %v33, align 4
  %v35 = getelementptr i8, ptr addrspace(1) %out, i32 %v32
  store i32 %v34, ptr addrspace(1) %v35, align 4
  %v36 = add i32 %v2, 2056
  %v37 = getelementptr i8, ptr addrspace(3) @tile, i32 %v36
  %v38 = load i32, ptr addrspace(3) %v37, align 4
  %v39 = getelementptr i8, ptr addrspace(1) %out, i32 %v36
  store i32 %v38, ptr addrspace(1) %v39, align 4
  %v40 = add i32 %v2, 2060
  %v41 = getelementptr i8, ptr addrspace(3) @tile, i32 %v40
  %v42 = load i32, ptr addrspace(3) %v41, align 4
  %v43 = getelementptr i8, ptr addrspace(1) %out, i32 %v40
  store i32 %v42, ptr addrspace(1) %v43, align 4
  ret void
}

define ptx_kernel void @gemm64(ptr addrspace(1) %a, ptr addrspace(1) %b, ptr addrspace(1) %c) {
  %v1 = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %v2 = and i32 %v1, 31
  %v3 = lshr i32 %v1, 5
  %v4 = add i32 %v1, 0
  %v5 = lshr i32 %v4, 2
  %v6 = and i32 %v4, 3
  %v7 = shl i32 %v6, 4
  %v8 = shl i32 %v5, 6
  %v9 = add i32 %v8, %v7
  %v10 = add i32 %v9, 0
  %v11 = ptrtoint ptr addrspace(3) @stages to i32
  %v12 = add i32 %v11, %v10
  %v13 = shl i32 %v5, 7
  %v14 = add i32 %v13, %v7
  %v15 = add i32 %v14, 0
  %v16 = getelementptr i8, ptr addrspace(1) %a, i32 %v15
  call void asm sideeffect "cp.async.cg.shared.global [$0], [$1], 16;", "r,l,~{memory}"(i32 %v12, ptr addrspace(1) %v16)
  %v17 = lshr i32 %v4, 3
  %v18 = and i32 %v4, 7
  %v19 = shl i32 %v18, 4
  %v20 = shl i32 %v17, 7
  %v21 = add i32 %v20, %v19
  %v22 = add i32 %v21, 4096
  %v23 = ptrtoint ptr addrspace(3) @stages to i32
  %v24 = add i32 %v23, %v22
  %v25 = add i32 %v21, 0
  %v26 = getelementptr i8, ptr addrspace(1) %b, i32 %v25
  call void asm sideeffect "cp.async.cg.shared.global [$0], [$1], 16;", "r,l,~{memory}"(i32 %v24, ptr addrspace(1) %v26)
  %v27 = add i32 %v1, 128
  %v28 = lshr i32 %v27, 2
  %v29 = and i32 %v27, 3
  %v30 = shl i32 %v29, 4
  %v31 = shl i32 %v28, 6
  %v32 = add i32 %v31, %v30
  %v33 = add i32 %v32, 0
  %v34 = ptrtoint ptr addrspace(3) @stages to i32
  %v35 = add i32 %v34, %v33
  %v36 = shl i32 %v28, 7
  %v37 = add i32 %v36, %v30
  %v38 = add i32 %v37, 0
  %v39 = getelementptr i8, ptr addrspace(1) %a, i32 %v38
  call void asm sideeffect "cp.async.cg.shared.global [$0], [$1], 16;", "r,l,~{memory}"(i32 %v35, ptr addrspace(1) %v39)
  %v40 = lshr i32 %v27, 3
  %v41 = and i32 %v27, 7
  %v42 = shl i32 %v41, 4
  %v43 = shl i32 %v40, 7
  %v44 = add i32 %v43, %v42
  %v45 = add i32 %v44, 4096
  %v46 = ptrtoint ptr addrspace(3) @stages to i32
  %v47 = add i32 %v46, %v45
  %v48 = add i32 %v44, 0
  %v49 = getelementptr i8, ptr addrspace(1) %b, i32 %v48
  call void asm sideeffect "cp.async.cg.shared.global [$0], [$1], 16;", "r,l,~{memory}"(i32 %v47, ptr addrspace(1) %v49)
  call void asm sideeffect "cp.async.commit_group;", "~{memory}"()
  %v50 = add i32 %v1, 0
  %v51 = lshr i32 %v50, 2
  %v52 = and i32 %v50, 3
  %v53 = shl i32 %v52, 4
  %v54 = shl i32 %v51, 6
  %v55 = add i32 %v54, %v53
  %v56 = add i32 %v55, 8192
  %v57 = ptrtoint ptr addrspace(3) @stages to i32
  %v58 = add i32 %v57, %v56
  %v59 = shl i32 %v51, 7
  %v60 = add i32 %v59, %v53
  %v61 = add i32 %v60, 64
  %v62 = getelementptr i8, ptr addrspace(1) %a, i32 %v61
  call void asm sideeffect "cp.async.cg.shared.global [$0], [$1], 16;", "r,l,~{memory}"(i32 %v58, ptr addrspace(1) %v62)
  %v63 = lshr i32 %v50, 3
  %v64 = and i32 %v50, 7
  %v65 = shl i32 %v64, 4
  %v66 = shl i32 %v63, 7
  %v67 = add i32 %v66, %v65
  %v68 = add i32 %v67, 12288
  %v69 = ptrtoint ptr addrspace(3) @stages to i32
  %v70 = add i32 %v69, %v68
  %v71 = add i32 %v67, 4096
  %v72 = getelementptr i8, ptr addrspace(1) %b, i32 %v71
  call void asm sideeffect "cp.async.cg.shared.global [$0], [$1], 16;", "r,l,~{memory}"(i32 %v70, ptr addrspace(1) %v72)
  %v73 = add i32 %v1, 128
  %v74 = lshr i32 %v73, 2
  %v75 = and i32 %v73, 3
  %v76 = shl i32 %v75, 4
  %v77 = shl i32 %v74, 6
  %v78 = add i32 %v77, %v76
  %v79 = add i32 %v78, 8192
  %v80 = ptrtoint ptr addrspace(3) @stages to i32
  %v81 = add i32 %v80, %v79
  %v82 = shl i32 %v74, 7
  %v83 = add i32 %v82, %v76
  %v84 = add i32 %v83, 64
  %v85 = getelementptr i8, ptr addrspace(1) %a, i32 %v84
  call void asm sideeffect "cp.async.cg.shared.global [$0], [$1], 16;", "r,l,~{memory}"(i32 %v81, ptr addrspace(1) %v85)
  %v86 = lshr i32 %v73, 3
  %v87 = and i32 %v73, 7
  %v88 = shl i32 %v87, 4
  %v89 = shl i32 %v86, 7
  %v90 = add i32 %v89, %v88
  %v91 = add i32 %v90, 12288
  %v92 = ptrtoint ptr addrspace(3) @stages to i32
  %v93 = add i32 %v92, %v91
  %v94 = add i32 %v90, 4096
  %v95 = getelementptr i8, ptr addrspace(1) %b, i32 %v94
  call void asm sideeffect "cp.async.cg.shared.global [$0], [$1], 16;", "r,l,~{memory}"(i32 %v93, ptr addrspace(1) %v95)
  call void asm sideeffect "cp.async.commit_group;", "~{memory}"()
  %v96 = and i32 %v2, 15
  %v97 = lshr i32 %v2, 4
  call void asm sideeffect "cp.async.wait_group $0;", "n,~{memory}"(i32 1)
  call void @llvm.nvvm.barrier0()
  %v98 = shl i32 %v3, 4
  %v99 = add i32 %v98, %v96
  %v100 = shl i32 %v99, 6
  %v101 = shl i32 %v97, 4
  %v102 = add i32 %v100, %v101
  %v103 = add i32 %v102, 0
  %v104 = ptrtoint ptr addrspace(3) @stages to i32
  %v105 = add i32 %v104, %v103
  %v106 = call {i32, i32, i32, i32} asm sideeffect "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {$0, $1, $2, $3}, [$4];", "=r,=r,=r,=r,r,~{memory}"(i32 %v105) #0
  %v107 = extractvalue {i32, i32, i32, i32} %v106, 0
  %v108 = extractvalue {i32, i32, i32, i32} %v106, 1
  %v109 = extractvalue {i32, i32, i32, i32} %v106, 2
  %v110 = extractvalue {i32, i32, i32, i32} %v106, 3
  %v111 = shl i32 %v96, 7
  %v112 = shl i32 %v97, 4
  %v113 = add i32 %v111, %v112
  %v114 = add i32 %v113, 4096
  %v115 = ptrtoint ptr addrspace(3) @stages to i32
  %v116 = add i32 %v115, %v114
  %v117 = call {i32, i32, i32, i32} asm sideeffect "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {$0, $1, $2, $3}, [$4];", "=r,=r,=r,=r,r,~{memory}"(i32 %v116) #0
  %v118 = extractvalue {i32, i32, i32, i32} %v117, 0
  %v119 = extractvalue {i32, i32, i32, i32} %v117, 1
  %v120 = extractvalue {i32, i32, i32, i32} %v117, 2
  %v121 = extractvalue {i32, i32, i32, i32} %v117, 3
  %v122 = call {float, float, float, float} asm "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {$0, $1, $2, $3}, {$4, $5, $6, $7}, {$8, $9}, {$10, $11, $12, $13};", "=f,=f,=f,=f,r,r,r,r,r,r,f,f,f,f"(i32 %v107, i32 %v108, i32 %v109, i32 %v110, i32 %v118, i32 %v119, float 0.0, float 0.0, float 0.0, float 0.0) #0
  %v123 = extractvalue {float, float, float, float} %v122, 0
  %v124 = extractvalue {float, float, float, float} %v122, 1
  %v125 = extractvalue {float, float, float, float} %v122, 2
  %v126 = extractvalue {float, float, float, float} %v122, 3
  %v127 = call {float, float, float, float} asm "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {$0, $1, $2, $3}, {$4, $5, $6, $7}, {$8, $9}, {$10, $11, $12, $13};", "=f,=f,=f,=f,r,r,r,r,r,r,f,f,f,f"(i32 %v107, i32 %v108, i32 %v109, i32 %v110, i32 %v120, i32 %v121, float 0.0, float 0.0, float 0.0, float 0.0) #0
  %v128 = extractvalue {float, float, float, float} %v127, 0
  %v129 = extractvalue {float, float, float, float} %v127, 1
  %v130 = extractvalue {float, float, float, float} %v127, 2
  %v131 = extractvalue {float, float, float, float} %v127, 3
  %v132 = shl i32 %v96, 7
  %v133 = shl i32 %v97, 4
  %v134 = add i32 %v132, %v133
  %v135 = add i32 %v134, 4128
  %v136 = ptrtoint ptr addrspace(3) @stages to i32
  %v137 = add i32 %v136, %v135
  %v138 = call {i32, i32, i32, i32} asm sideeffect "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {$0, $1, $2, $3}, [$4];", "=r,=r,=r,=r,r,~{memory}"(i32 %v137) #0
  %v139 = extractvalue {i32, i32, i32, i32} %v138, 0
  %v140 = extractvalue {i32, i32, i32, i32} %v138, 1
  %v141 = extractvalue {i32, i32, i32, i32} %v138, 2
  %v142 = extractvalue {i32, i32, i32, i32} %v138, 3
  %v143 = call {float, float, float, float} asm "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {$0, $1, $2, $3}, {$4, $5, $6, $7}, {$8, $9}, {$10, $11, $12, $13};", "=f,=f,=f,=f,r,r,r,r,r,r,f,f,f,f"(i32 %v107, i32 %v108, i32 %v109, i32 %v110, i32 %v139, i32 %v140, float 0.0, float 0.0, float 0.0, float 0.0) #0
  %v144 = extractvalue {float, float, float, float} %v143, 0
  %v145 = extractvalue {float, float, float, float} %v143, 1
  %v146 = extractvalue {float, float, float, float} %v143, 2
  %v147 = extractvalue {float, float, float, float} %v143, 3
  %v148 = call {float, float, float, float} asm "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {$0, $1, $2, $3}, {$4, $5, $6, $7}, {$8, $9}, {$10, $11, $12, $13};", "=f,=f,=f,=f,r,r,r,r,r,r,f,f,f,f"(i32 %v107, i32 %v108, i32 %v109, i32 %v110, i32 %v141, i32 %v142, float 0.0, float 0.0, float 0.0, float 0.0) #0
  %v149 = extractvalue {float, float, float, float} %v148, 0
  %v150 = extractvalue {float, float, float, float} %v148, 1
  %v151 = extractvalue {float, float, float, float} %v148, 2
  %v152 = extractvalue {float, float, float, float} %v148, 3
  %v153 = shl i32 %v96, 7
  %v154 = shl i32 %v97, 4
  %v155 = add i32 %v153, %v154
  %v156 = add i32 %v155, 4160
  %v157 = ptrtoint ptr addrspace(3) @stages to i32
  %v158 = add i32 %v157, %v156
  %v159 = call {i32, i32, i32, i32} asm sideeffect "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {$0, $1, $2, $3}, [$4];", "=r,=r,=r,=r,r,~{memory}"(i32 %v158) #0
  %v160 = extractvalue {i32, i32, i32, i32} %v159, 0
  %v161 = extractvalue {i32, i32, i32, i32} %v159, 1
  %v162 = extractvalue {i32, i32, i32, i32} %v159, 2
  %v163 = extractvalue {i32, i32, i32, i32} %v159, 3
  %v164 = call {float, float, float, float} asm "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {$0, $1, $2, $3}, {$4, $5, $6, $7}, {$8, $9}, {$10, $11, $12, $13};", "=f,=f,=f,=f,r,r,r,r,r,r,f,f,f,f"(i32 %v107, i32 %v108, i32 %v109, i32 %v110, i32 %v160, i32 %v161, float 0.0, float 0.0, float 0.0, float 0.0) #0
  %v165 = extractvalue {float, float, float, float} %v164, 0
  %v166 = extractvalue {float, float, float, float} %v164, 1
  %v167 = extractvalue {float, float, float, float} %v164, 2
  %v168 = extractvalue {float, float, float, float} %v164, 3
  %v169 = call {float, float, float, float} asm "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {$0, $1, $2, $3}, {$4, $5, $6, $7}, {$8, $9}, {$10, $11, $12, $13};", "=f,=f,=f,=f,r,r,r,r,r,r,f,f,f,f"(i32 %v107, i32 %v108, i32 %v109, i32 %v110, i32 %v162, i32 %v163, float 0.0, float 0.0, float 0.0, float 0.0) #0
  %v170 = extractvalue {float, float, float, float} %v169, 0
  %v171 = extractvalue {float, float, float, float} %v169, 1
  %v172 = extractvalue {float, float, float, float} %v169, 2
  %v173 = extractvalue {float, float, float, float} %v169, 3
  %v174 = shl i32 %v96, 7
  %v175 = shl i32 %v97, 4
  %v176 = add i32 %v174, %v175
  %v177 = add i32 %v176, 4192
  %v178 = ptrtoint ptr addrspace(3) @stages to i32
  %v179 = add i32 %v178, %v177
  %v180 = call {i32, i32, i32, i32} asm sideeffect "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {$0, $1, $2, $3}, [$4];", "=r,=r,=r,=r,r,~{memory}"(i32 %v179) #0
  %v181 = extractvalue {i32, i32, i32, i32} %v180, 0
  %v182 = extractvalue {i32, i32, i32, i32} %v180, 1
  %v183 = extractvalue {i32, i32, i32, i32} %v180, 2
  %v184 = extractvalue {i32, i32, i32, i32} %v180, 3
  %v185 = call {float, float, float, float} asm "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {$0, $1, $2, $3}, {$4, $5, $6, $7}, {$8, $9}, {$10, $11, $12, $13};", "=f,=f,=f,=f,r,r,r,r,r,r,f,f,f,f"(i32 %v107, i32 %v108, i32 %v109, i32 %v110, i32 %v181, i32 %v182, float 0.0, float 0.0, float 0.0, float 0.0) #0
  %v186 = extractvalue {float, float, float, float} %v185, 0
  %v187 = extractvalue {float, float, float, float} %v185, 1
  %v188 = extractvalue {float, float, float, float} %v185, 2
  %v189 = extractvalue {float, float, float, float} %v185, 3
  %v190 = call {float, float, float, float} asm "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {$0, $1, $2, $3}, {$4, $5, $6, $7}, {$8, $9}, {$10, $11, $12, $13};", "=f,=f,=f,=f,r,r,r,r,r,r,f,f,f,f"(i32 %v107, i32 %v108, i32 %v109, i32 %v110, i32 %v183, i32 %v184, float 0.0, float 0.0, float 0.0, float 0.0) #0
  %v191 = extractvalue {float, float, float, float} %v190, 0
  %v192 = extractvalue {float, float, float, float} %v190, 1
  %v193 = extractvalue {float, float, float, float} %v190, 2
  %v194 = extractvalue {float, float, float, float} %v190, 3
  %v195 = shl i32 %v3, 4
  %v196 = add i32 %v195, %v96
  %v197 = shl i32 %v196, 6
  %v198 = shl i32 %v97, 4
  %v199 = add i32 %v197, %v198
  %v200 = add i32 %v199, 32
  %v201 = ptrtoint ptr addrspace(3) @stages to i32
  %v202 = add i32 %v201, %v200
  %v203 = call {i32, i32, i32, i32} asm sideeffect "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {$0, $1, $2, $3}, [$4];", "=r,=r,=r,=r,r,~{memory}"(i32 %v202) #0
  %v204 = extractvalue {i32, i32, i32, i32} %v203, 0
  %v205 = extractvalue {i32, i32, i32, i32} %v203, 1
  %v206 = extractvalue {i32, i32, i32, i32} %v203, 2
  %v207 = extractvalue {i32, i32, i32, i32} %v203, 3
  %v208 = shl i32 %v96, 7
  %v209 = shl i32 %v97, 4
  %v210 = add i32 %v208, %v209
  %v211 = add i32 %v210, 6144
  %v212 = ptrtoint ptr addrspace(3) @stages to i32
  %v213 = add i32 %v212, %v211
  %v214 = call {i32, i32, i32, i32} asm sideeffect "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {$0, $1, $2, $3}, [$4];", "=r,=r,=r,=r,r,~{memory}"(i32 %v213) #0
  %v215 = extractvalue {i32, i32, i32, i32} %v214, 0
  %v216 = extractvalue {i32, i32, i32, i32} %v214, 1
  %v217 = extractvalue {i32, i32, i32, i32} %v214, 2
  %v218 = extractvalue {i32, i32, i32, i32} %v214, 3
  %v219 = call {float, float, float, float} asm "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {$0, $1, $2, $3}, {$4, $5, $6, $7}, {$8, $9}, {$10, $11, $12, $13};", "=f,=f,=f,=f,r,r,r,r,r,r,f,f,f,f"(i32 %v204, i32 %v205, i32 %v206, i32 %v207, i32 %v215, i32 %v216, float %v123, float %v124, float %v125, float %v126) #0
  %v220 = extractvalue {float, float, float, float} %v219, 0
  %v221 = extractvalue {float, float, float, float} %v219, 1
  %v222 = extractvalue {float, float, float, float} %v219, 2
  %v223 = extractvalue {float, float, float, float} %v219, 3
  %v224 = call {float, float, float, float} asm "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {$0, $1, $2, $3}, {$4, $5, $6, $7}, {$8, $9}, {$10, $11, $12, $13};", "=f,=f,=f,=f,r,r,r,r,r,r,f,f,f,f"(i32 %v204, i32 %v205, i32 %v206, i32 %v207, i32 %v217, i32 %v218, float %v128, float %v129, float %v130, float %v131) #0
  %v225 = extractvalue {float, float, float, float} %v224, 0
  %v226 = extractvalue {float, float, float, float} %v224, 1
  %v227 = extractvalue {float, float, float, float} %v224, 2
  %v228 = extractvalue {float, float, float, float} %v224, 3
  %v229 = shl i32 %v96, 7
  %v230 = shl i32 %v97, 4
  %v231 = add i32 %v229, %v230
  %v232 = add i32 %v231, 6176
  %v233 = ptrtoint ptr addrspace(3) @stages to i32
  %v234 = add i32 %v233, %v232
  %v235 = call {i32, i32, i32, i32} asm sideeffect "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {$0, $1, $2, $3}, [$4];", "=r,=r,=r,=r,r,~{memory}"(i32 %v234) #0
  %v236 = extractvalue {i32, i32, i32, i32} %v235, 0
  %v237 = extractvalue {i32, i32, i32, i32} %v235, 1
  %v238 = extractvalue {i32, i32, i32, i32} %v235, 2
  %v239 = extractvalue {i32, i32, i32, i32} %v235, 3
  %v240 = call {float, float, float, float} asm "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {$0, $1, $2, $3}, {$4, $5, $6, $7}, {$8, $9}, {$10, $11, $12, $13};", "=f,=f,=f,=f,r,r,r,r,r,r,f,f,f,f"(i32 %v204, i32 %v205, i32 %v206, i32 %v207, i32 %v236, i32 %v237, float %v144, float %v145, float %v146, float %v147) #0
  %v241 = extractvalue {float, float, float, float} %v240, 0
  %v242 = extractvalue {float, float, float, float} %v240, 1
  %v243 = extractvalue {float, float, float, float} %v240, 2
  %v244 = extractvalue {float, float, float, float} %v240, 3
  %v245 = call {float, float, float, float} asm "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {$0, $1, $2, $3}, {$4, $5, $6, $7}, {$8, $9}, {$10, $11, $12, $13};", "=f,=f,=f,=f,r,r,r,r,r,r,f,f,f,f"(i32 %v204, i32 %v205, i32 %v206, i32 %v207, i32 %v238, i32 %v239, float %v149, float %v150, float %v151, float %v152) #0
  %v246 = extractvalue {float, float, float, float} %v245, 0
  %v247 = extractvalue {float, float, float, float} %v245, 1
  %v248 = extractvalue {float, float, float, float} %v245, 2
  %v249 = extractvalue {float, float, float, float} %v245, 3
  %v250 = shl i32 %v96, 7
  %v251 = shl i32 %v97, 4
  %v252 = add i32 %v250, %v251
  %v253 = add i32 %v252, 6208
  %v254 = ptrtoint ptr addrspace(3) @stages to i32
  %v255 = add i32 %v254, %v253
  %v256 = call {i32, i32, i32, i32} asm sideeffect "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {$0, $1, $2, $3}, [$4];", "=r,=r,=r,=r,r,~{memory}"(i32 %v255) #0
  %v257 = extractvalue {i32, i32, i32, i32} %v256, 0
  %v258 = extractvalue {i32, i32, i32, i32} %v256, 1
  %v259 = extractvalue {i32, i32, i32, i32} %v256, 2
  %v260 = extractvalue {i32, i32, i32, i32} %v256, 3
  %v261 = call {float, float, float, float} asm "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {$0, $1, $2, $3}, {$4, $5, $6, $7}, {$8, $9}, {$10, $11, $12, $13};", "=f,=f,=f,=f,r,r,r,r,r,r,f,f,f,f"(i32 %v204, i32 %v205, i32 %v206, i32 %v207, i32 %v257, i32 %v258, float %v165, float %v166, float %v167, float %v168) #0
  %v262 = extractvalue {float, float, float, float} %v261, 0
  %v263 = extractvalue {float, float, float, float} %v261, 1
  %v264 = extractvalue {float, float, float, float} %v261, 2
  %v265 = extractvalue {float, float, float, float} %v261, 3
  %v266 = call {float, float, float, float} asm "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {$0, $1, $2, $3}, {$4, $5, $6, $7}, {$8, $9}, {$10, $11, $12, $13};", "=f,=f,=f,=f,r,r,r,r,r,r,f,f,f,f"(i32 %v204, i32 %v205, i32 %v206, i32 %v207, i32 %v259, i32 %v260, float %v170, float %v171, float %v172, float %v173) #0
  %v267 = extractvalue {float, float, float, float} %v266, 0
  %v268 = extractvalue {float, float, float, float} %v266, 1
  %v269 = extractvalue {float, float, float, float} %v266, 2
  %v270 = extractvalue {float, float, float, float} %v266, 3
  %v271 = shl i32 %v96, 7
  %v272 = shl i32 %v97, 4
  %v273 = add i32 %v271, %v272
  %v274 = add i32 %v273, 6240
  %v275 = ptrtoint ptr addrspace(3) @stages to i32
  %v276 = add i32 %v275, %v274
  %v277 = call {i32, i32, i32, i32} asm sideeffect "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {$0, $1, $2, $3}, [$4];", "=r,=r,=r,=r,r,~{memory}"(i32 %v276) #0
  %v278 = extractvalue {i32, i32, i32, i32} %v277, 0
  %v279 = extractvalue {i32, i32, i32, i32} %v277, 1
  %v280 = extractvalue {i32, i32, i32, i32} %v277, 2
  %v281 = extractvalue {i32, i32, i32, i32} %v277, 3
  %v282 = call {float, float, float, float} asm "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {$0, $1, $2, $3}, {$4, $5, $6, $7}, {$8, $9}, {$10, $11, $12, $13};", "=f,=f,=f,=f,r,r,r,r,r,r,f,f,f,f"(i32 %v204, i32 %v205, i32 %v206, i32 %v207, i32 %v278, i32 %v279, float %v186, float %v187, float %v188, float %v189) #0
  %v283 = extractvalue {float, float, float, float} %v282, 0
  %v284 = extractvalue {float, float, float, float} %v282, 1
  %v285 = extractvalue {float, float, float, float} %v282, 2
  %v286 = extractvalue {float, float, float, float} %v282, 3
  %v287 = call {float, float, float, float} asm "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {$0, $1, $2, $3}, {$4, $5, $6, $7}, {$8, $9}, {$10, $11, $12, $13};", "=f,=f,=f,=f,r,r,r,r,r,r,f,f,f,f"(i32 %v204, i32 %v205, i32 %v206, i32 %v207, i32 %v280, i32 %v281, float %v191, float %v192, float %v193, float %v194) #0
  %v288 = extractvalue {float, float, float, float} %v287, 0
  %v289 = extractvalue {float, float, float, float} %v287, 1
  %v290 = extractvalue {float, float, float, float} %v287, 2
  %v291 = extractvalue {float, float, float, float} %v287, 3
  call void asm sideeffect "cp.async.wait_group $0;", "n,~{memory}"(i32 0)
  call void @llvm.nvvm.barrier0()
  %v292 = shl i32 %v3, 4
  %v293 = add i32 %v292, %v96
  %v294 = shl i32 %v293, 6
  %v295 = shl i32 %v97, 4
  %v296 = add i32 %v294, %v295
  %v297 = add i32 %v296, 8192
  %v298 = ptrtoint ptr addrspace(3) @stages to i32
  %v299 = add i32 %v298, %v297
  %v300 = call {i32, i32, i32, i32} asm sideeffect "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {$0, $1, $2, $3}, [$4];", "=r,=r,=r,=r,r,~{memory}"(i32 %v299) #0
  %v301 = extractvalue {i32, i32, i32, i32} %v300, 0
  %v302 = extractvalue {i32, i32, i32, i32} %v300, 1
  %v303 = extractvalue {i32, i32, i32, i32} %v300, 2
  %v304 = extractvalue {i32, i32, i32, i32} %v300, 3
  %v305 = shl i32 %v96, 7
  %v306 = shl i32 %v97, 4
  %v307 = add i32 %v305, %v306
  %v308 = add i32 %v307, 12288
  %v309 = ptrtoint ptr addrspace(3) @stages to i32
  %v310 = add i32 %v309, %v308
  %v311 = call {i32, i32, i32, i32} asm sideeffect "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {$0, $1, $2, $3}, [$4];", "=r,=r,=r,=r,r,~{memory}"(i32 %v310) #0
  %v312 = extractvalue {i32, i32, i32, i32} %v311, 0
  %v313 = extractvalue {i32, i32, i32, i32} %v311, 1
  %v314 = extractvalue {i32, i32, i32, i32} %v311, 2
  %v315 = extractvalue {i32, i32, i32, i32} %v311, 3
  %v316 = call {float, float, float, float} asm "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {$0, $1, $2, $3}, {$4, $5, $6, $7}, {$8, $9}, {$10, $11, $12, $13};", "=f,=f,=f,=f,r,r,r,r,r,r,f,f,f,f"(i32 %v301, i32 %v302, i32 %v303, i32 %v304, i32 %v312, i32 %v313, float %v220, float %v221, float %v222, float %v223) #0
  %v317 = extractvalue {float, float, float, float} %v316, 0
  %v318 = extractvalue {float, float, float, float} %v316, 1
  %v319 = extractvalue {float, float, float, float} %v316, 2
  %v320 = extractvalue {float, float, float, float} %v316, 3
  %v321 = call {float, float, float, float} asm "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {$0, $1, $2, $3}, {$4, $5, $6, $7}, {$8, $9}, {$10, $11, $12, $13};", "=f,=f,=f,=f,r,r,r,r,r,r,f,f,f,f"(i32 %v301, i32 %v302, i32 %v303, i32 %v304, i32 %v314, i32 %v315, float %v225, float %v226, float %v227, float %v228) #0
  %v322 = extractvalue {float, float, float, float} %v321, 0
  %v323 = extractvalue {float, float, float, float} %v321, 1
  %v324 = extractvalue {float, float, float, float} %v321, 2
  %v325 = extractvalue {float, float, float, float} %v321, 3
  %v326 = shl i32 %v96, 7
  %v327 = shl i32 %v97, 4
  %v328 = add i32 %v326, %v327
  %v329 = add i32 %v328, 12320
  %v330 = ptrtoint ptr addrspace(3) @stages to i32
  %v331 = add i32 %v330, %v329
  %v332 = call {i32, i32, i32, i32} asm sideeffect "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {$0, $1, $2, $3}, [$4];", "=r,=r,=r,=r,r,~{memory}"(i32 %v331) #0
  %v333 = extractvalue {i32, i32, i32, i32} %v332, 0
  %v334 = extractvalue {i32, i32, i32, i32} %v332, 1
  %v335 = extractvalue {i32, i32, i32, i32} %v332, 2
  %v336 = extractvalue {i32, i32, i32, i32} %v332, 3
  %v337 = call {float, float, float, float} asm "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {$0, $1, $2, $3}, {$4, $5, $6, $7}, {$8, $9}, {$10, $11, $12, $13};", "=f,=f,=f,=f,r,r,r,r,r,r,f,f,f,f"(i32 %v301, i32 %v302, i32 %v303, i32 %v304, i32 %v333, i32 %v334, float %v241, float %v242, float %v243, float %v244) #0
  %v338 = extractvalue {float, float, float, float} %v337, 0
  %v339 = extractvalue {float, float, float, float} %v337, 1
  %v340 = extractvalue {float, float, float, float} %v337, 2
  %v341 = extractvalue {float, float, float, float} %v337, 3
  %v342 = call {float, float, float, float} asm "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {$0, $1, $2, $3}, {$4, $5, $6, $7}, {$8, $9}, {$10, $11, $12, $13};", "=f,=f,=f,=f,r,r,r,r,r,r,f,f,f,f"(i32 %v301, i32 %v302, i32 %v303, i32 %v304, i32 %v335, i32 %v336, float %v246, float %v247, float %v248, float %v249) #0
  %v343 = extractvalue {float, float, float, float} %v342, 0
  %v344 = extractvalue {float, float, float, float} %v342, 1
  %v345 = extractvalue {float, float, float, float} %v342, 2
  %v346 = extractvalue {float, float, float, float} %v342, 3
  %v347 = shl i32 %v96, 7
  %v348 = shl i32 %v97, 4
  %v349 = add i32 %v347, %v348
  %v350 = add i32 %v349, 12352
  %v351 = ptrtoint ptr addrspace(3) @stages to i32
  %v352 = add i32 %v351, %v350
  %v353 = call {i32, i32, i32, i32} asm sideeffect "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {$0, $1, $2, $3}, [$4];", "=r,=r,=r,=r,r,~{memory}"(i32 %v352) #0
  %v354 = extractvalue {i32, i32, i32, i32} %v353, 0
  %v355 = extractvalue {i32, i32, i32, i32} %v353, 1
  %v356 = extractvalue {i32, i32, i32, i32} %v353, 2
  %v357 = extractvalue {i32, i32, i32, i32} %v353, 3
  %v358 = call {float, float, float, float} asm "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {$0, $1, $2, $3}, {$4, $5, $6, $7}, {$8, $9}, {$10, $11, $12, $13};", "=f,=f,=f,=f,r,r,r,r,r,r,f,f,f,f"(i32 %v301, i32 %v302, i32 %v303, i32 %v304, i32 %v354, i32 %v355, float %v262, float %v263, float %v264, float %v265) #0
  %v359 = extractvalue {float, float, float, float} %v358, 0
  %v360 = extractvalue {float, float, float, float} %v358, 1
  %v361 = extractvalue {float, float, float, float} %v358, 2
  %v362 = extractvalue {float, float, float, float} %v358, 3
  %v363 = call {float, float, float, float} asm "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {$0, $1, $2, $3}, {$4, $5, $6, $7}, {$8, $9}, {$10, $11, $12, $13};", "=f,=f,=f,=f,r,r,r,r,r,r,f,f,f,f"(i32 %v301, i32 %v302, i32 %v303, i32 %v304, i32 %v356, i32 %v357, float %v267, float %v268, float %v269, float %v270) #0
  %v364 = extractvalue {float, float, float, float} %v363, 0
  %v365 = extractvalue {float, float, float, float} %v363, 1
  %v366 = extractvalue {float, float, float, float} %v363, 2
  %v367 = extractvalue {float, float, float, float} %v363, 3
  %v368 = shl i32 %v96, 7
  %v369 = shl i32 %v97, 4
  %v370 = add i32 %v368, %v369
  %v371 = add i32 %v370, 12384
  %v372 = ptrtoint ptr addrspace(3) @stages to i32
  %v373 = add i32 %v372, %v371
  %v374 = call {i32, i32, i32, i32} asm sideeffect "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {$0, $1, $2, $3}, [$4];", "=r,=r,=r,=r,r,~{memory}"(i32 %v373) #0
  %v375 = extractvalue {i32, i32, i32, i32} %v374, 0
  %v376 = extractvalue {i32, i32, i32, i32} %v374, 1
  %v377 = extractvalue {i32, i32, i32, i32} %v374, 2
  %v378 = extractvalue {i32, i32, i32, i32} %v374, 3
  %v379 = call {float, float, float, float} asm "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {$0, $1, $2, $3}, {$4, $5, $6, $7}, {$8, $9}, {$10, $11, $12, $13};", "=f,=f,=f,=f,r,r,r,r,r,r,f,f,f,f"(i32 %v301, i32 %v302, i32 %v303, i32 %v304, i32 %v375, i32 %v376, float %v283, float %v284, float %v285, float %v286) #0
  %v380 = extractvalue {float, float, float, float} %v379, 0
  %v381 = extractvalue {float, float, float, float} %v379, 1
  %v382 = extractvalue {float, float, float, float} %v379, 2
  %v383 = extractvalue {float, float, float, float} %v379, 3
  %v384 = call {float, float, float, float} asm "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {$0, $1, $2, $3}, {$4, $5, $6, $7}, {$8, $9}, {$10, $11, $12, $13};", "=f,=f,=f,=f,r,r,r,r,r,r,f,f,f,f"(i32 %v301, i32 %v302, i32 %v303, i32 %v304, i32 %v377, i32 %v378, float %v288, float %v289, float %v290, float %v291) #0
  %v385 = extractvalue {float, float, float, float} %v384, 0
  %v386 = extractvalue {float, float, float, float} %v384, 1
  %v387 = extractvalue {float, float, float, float} %v384, 2
  %v388 = extractvalue {float, float, float, float} %v384, 3
  %v389 = shl i32 %v3, 4
  %v390 = add i32 %v389, %v96
  %v391 = shl i32 %v390, 6
  %v392 = shl i32 %v97, 4
  %v393 = add i32 %v391, %v392
  %v394 = add i32 %v393, 8224
  %v395 = ptrtoint ptr addrspace(3) @stages to i32
  %v396 = add i32 %v395, %v394
  %v397 = call {i32, i32, i32, i32} asm sideeffect "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {$0, $1, $2, $3}, [$4];", "=r,=r,=r,=r,r,~{memory}"(i32 %v396) #0
  %v398 = extractvalue {i32, i32, i32, i32} %v397, 0
  %v399 = extractvalue {i32, i32, i32, i32} %v397, 1
  %v400 = extractvalue {i32, i32, i32, i32} %v397, 2
  %v401 = extractvalue {i32, i32, i32, i32} %v397, 3
  %v402 = shl i32 %v96, 7
  %v403 = shl i32 %v97, 4
  %v404 = add i32 %v402, %v403
  %v405 = add i32 %v404, 14336
  %v406 = ptrtoint ptr addrspace(3) @stages to i32
  %v407 = add i32 %v406, %v405
  %v408 = call {i32, i32, i32, i32} asm sideeffect "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {$0, $1, $2, $3}, [$4];", "=r,=r,=r,=r,r,~{memory}"(i32 %v407) #0
  %v409 = extractvalue {i32, i32, i32, i32} %v408, 0
  %v410 = extractvalue {i32, i32, i32, i32} %v408, 1
  %v411 = extractvalue {i32, i32, i32, i32} %v408, 2
  %v412 = extractvalue {i32, i32, i32, i32} %v408, 3
  %v413 = call {float, float, float, float} asm "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {$0, $1, $2, $3}, {$4, $5, $6, $7}, {$8, $9}, {$10, $11, $12, $13};", "=f,=f,=f,=f,r,r,r,r,r,r,f,f,f,f"(i32 %v398, i32 %v399, i32 %v400, i32 %v401, i32 %v409, i32 %v410, float %v317, float %v318, float %v319, float %v320) #0
  %v414 = extractvalue {float, float, float, float} %v413, 0
  %v415 = extractvalue {float, float, float, float} %v413, 1
  %v416 = extractvalue {float, float, float, float} %v413, 2
  %v417 = extractvalue {float, float, float, float} %v413, 3
  %v418 = call {float, float, float, float} asm "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {$0, $1, $2, $3}, {$4, $5, $6, $7}, {$8, $9}, {$10, $11, $12, $13};", "=f,=f,=f,=f,r,r,r,r,r,r,f,f,f,f"(i32 %v398, i32 %v399, i32 %v400, i32 %v401, i32 %v411, i32 %v412, float %v322, float %v323, float %v324, float %v325) #0
  %v419 = extractvalue {float, float, float, float} %v418, 0
  %v420 = extractvalue {float, float, float, float} %v418, 1
  %v421 = extractvalue {float, float, float, float} %v418, 2
  %v422 = extractvalue {float, float, float, float} %v418, 3
  %v423 = shl i32 %v96, 7
  %v424 = shl i32 %v97, 4
  %v425 = add i32 %v423, %v424
  %v426 = add i32 %v425, 14368
  %v427 = ptrtoint ptr addrspace(3) @stages to i32
  %v428 = add i32 %v427, %v426
  %v429 = call {i32, i32, i32, i32} asm sideeffect "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {$0, $1, $2, $3}, [$4];", "=r,=r,=r,=r,r,~{memory}"(i32 %v428) #0
  %v430 = extractvalue {i32, i32, i32, i32} %v429, 0
  %v431 = extractvalue {i32, i32, i32, i32} %v429, 1
  %v432 = extractvalue {i32, i32, i32, i32} %v429, 2
  %v433 = extractvalue {i32, i32, i32, i32} %v429, 3
  %v434 = call {float, float, float, float} asm "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {$0, $1, $2, $3}, {$4, $5, $6, $7}, {$8, $9}, {$10, $11, $12, $13};", "=f,=f,=f,=f,r,r,r,r,r,r,f,f,f,f"(i32 %v398, i32 %v399, i32 %v400, i32 %v401, i32 %v430, i32 %v431, float %v338, float %v339, float %v340, float %v341) #0
  %v435 = extractvalue {float, float, float, float} %v434, 0
  %v436 = extractvalue {float, float, float, float} %v434, 1
  %v437 = extractvalue {float, float, float, float} %v434, 2
  %v438 = extractvalue {float, float, float, float} %v434, 3
  %v439 = call {float, float, float, float} asm "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {$0, $1, $2, $3}, {$4, $5, $6, $7}, {$8, $9}, {$10, $11, $12, $13};", "=f,=f,=f,=f,r,r,r,r,r,r,f,f,f,f"(i32 %v398, i32 %v399, i32 %v400, i32 %v401, i32 %v432, i32 %v433, float %v343, float %v344, float %v345, float %v346) #0
  %v440 = extractvalue {float, float, float, float} %v439, 0
  %v441 = extractvalue {float, float, float, float} %v439, 1
  %v442 = extractvalue {float, float, float, float} %v439, 2
  %v443 = extractvalue {float, float, float, float} %v439, 3
  %v444 = shl i32 %v96, 7
  %v445 = shl i32 %v97, 4
  %v446 = add i32 %v444, %v445
  %v447 = add i32 %v446, 14400
  %v448 = ptrtoint ptr addrspace(3) @stages to i32
  %v449 = add i32 %v448, %v447
  %v450 = call {i32, i32, i32, i32} asm sideeffect "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {$0, $1, $2, $3}, [$4];", "=r,=r,=r,=r,r,~{memory}"(i32 %v449) #0
  %v451 = extractvalue {i32, i32, i32, i32} %v450, 0
  %v452 = extractvalue {i32, i32, i32, i32} %v450, 1
  %v453 = extractvalue {i32, i32, i32, i32} %v450, 2
  %v454 = extractvalue {i32, i32, i32, i32} %v450, 3
  %v455 = call {float, float, float, float} asm "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {$0, $1, $2, $3}, {$4, $5, $6, $7}, {$8, $9}, {$10, $11, $12, $13};", "=f,=f,=f,=f,r,r,r,r,r,r,f,f,f,f"(i32 %v398, i32 %v399, i32 %v400, i32 %v401, i32 %v451, i32 %v452, float %v359, float %v360, float %v361, float %v362) #0
  %v456 = extractvalue {float, float, float, float} %v455, 0
  %v457 = extractvalue {float, float, float, float} %v455, 1
  %v458 = extractvalue {float, float, float, float} %v455, 2
  %v459 = extractvalue {float, float, float, float} %v455, 3
  %v460 = call {float, float, float, float} asm "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {$0, $1, $2, $3}, {$4, $5, $6, $7}, {$8, $9}, {$10, $11, $12, $13};", "=f,=f,=f,=f,r,r,r,r,r,r,f,f,f,f"(i32 %v398, i32 %v399, i32 %v400, i32 %v401, i32 %v453, i32 %v454, float %v364, float %v365, float %v366, float %v367) #0
  %v461 = extractvalue {float, float, float, float} %v460, 0
  %v462 = extractvalue {float, float, float, float} %v460, 1
  %v463 = extractvalue {float, float, float, float} %v460, 2
  %v464 = extractvalue {float, float, float, float} %v460, 3
  %v465 = shl i32 %v96, 7
  %v466 = shl i32 %v97, 4
  %v467 = add i32 %v465, %v466
  %v468 = add i32 %v467, 14432
  %v469 = ptrtoint ptr addrspace(3) @stages to i32
  %v470 = add i32 %v469, %v468
  %v471 = call {i32, i32, i32, i32} asm sideeffect "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {$0, $1, $2, $3}, [$4];", "=r,=r,=r,=r,r,~{memory}"(i32 %v470) #0
  %v472 = extractvalue {i32, i32, i32, i32} %v471, 0
  %v473 = extractvalue {i32, i32, i32, i32} %v471, 1
  %v474 = extractvalue {i32, i32, i32, i32} %v471, 2
  %v475 = extractvalue {i32, i32, i32, i32} %v471, 3
  %v476 = call {float, float, float, float} asm "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {$0, $1, $2, $3}, {$4, $5, $6, $7}, {$8, $9}, {$10, $11, $12, $13};", "=f,=f,=f,=f,r,r,r,r,r,r,f,f,f,f"(i32 %v398, i32 %v399, i32 %v400, i32 %v401, i32 %v472, i32 %v473, float %v380, float %v381, float %v382, float %v383) #0
  %v477 = extractvalue {float, float, float, float} %v476, 0
  %v478 = extractvalue {float, float, float, float} %v476, 1
  %v479 = extractvalue {float, float, float, float} %v476, 2
  %v480 = extractvalue {float, float, float, float} %v476, 3
  %v481 = call {float, float, float, float} asm "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {$0, $1, $2, $3}, {$4, $5, $6, $7}, {$8, $9}, {$10, $11, $12, $13};", "=f,=f,=f,=f,r,r,r,r,r,r,f,f,f,f"(i32 %v398, i32 %v399, i32 %v400, i32 %v401, i32 %v474, i32 %v475, float %v385, float %v386, float %v387, float %v388) #0
  %v482 = extractvalue {float, float, float, float} %v481, 0
  %v483 = extractvalue {float, float, float, float} %v481, 1
  %v484 = extractvalue {float, float, float, float} %v481, 2
  %v485 = extractvalue {float, float, float, float} %v481, 3
  %v486 = shl i32 %v3, 4
  %v487 = lshr i32 %v2, 2
  %v488 = add i32 %v486, %v487
  %v489 = and i32 %v2, 3
  %v490 = shl i32 %v489, 1
  %v491 = add i32 %v488, 0
  %v492 = shl i32 %v491, 6
  %v493 = add i32 %v492, %v490
  %v494 = add i32 %v493, 0
  %v495 = insertelement <2 x float> undef, float %v414, i32 0
  %v496 = insertelement <2 x float> %v495, float %v415, i32 1
  %v497 = getelementptr float, ptr addrspace(1) %c, i32 %v494
  store <2 x float> %v496, ptr addrspace(1) %v497, align 8
  %v498 = add i32 %v488, 8
  %v499 = shl i32 %v498, 6
  %v500 = add i32 %v499, %v490
  %v501 = add i32 %v500, 0
  %v502 = insertelement <2 x float> undef, float %v416, i32 0
  %v503 = insertelement <2 x float> %v502, float %v417, i32 1
  %v504 = getelementptr float, ptr addrspace(1) %c, i32 %v501
  store <2 x float> %v503, ptr addrspace(1) %v504, align 8
  %v505 = add i32 %v488, 0
  %v506 = shl i32 %v505, 6
  %v507 = add i32 %v506, %v490
  %v508 = add i32 %v507, 8
  %v509 = insertelement <2 x float> undef, float %v419, i32 0
  %v510 = insertelement <2 x float> %v509, float %v420, i32 1
  %v511 = getelementptr float, ptr addrspace(1) %c, i32 %v508
  store <2 x float> %v510, ptr addrspace(1) %v511, align 8
  %v512 = add i32 %v488, 8
  %v513 = shl i32 %v512, 6
  %v514 = add i32 %v513, %v490
  %v515 = add i32 %v514, 8
  %v516 = insertelement <2 x float> undef, float %v421, i32 0
  %v517 = insertelement <2 x float> %v516, float %v422, i32 1
  %v518 = getelementptr float, ptr addrspace(1) %c, i32 %v515
  store <2 x float> %v517, ptr addrspace(1) %v518, align 8
  %v519 = add i32 %v488, 0
  %v520 = shl i32 %v519, 6
  %v521 = add i32 %v520, %v490
  %v522 = add i32 %v521, 16
  %v523 = insertelement <2 x float> undef, float %v435, i32 0
  %v524 = insertelement <2 x float> %v523, float %v436, i32 1
  %v525 = getelementptr float, ptr addrspace(1) %c, i32 %v522
  store <2 x float> %v524, ptr addrspace(1) %v525, align 8
  %v526 = add i32 %v488, 8
  %v527 = shl i32 %v526, 6
  %v528 = add i32 %v527, %v490
  %v529 = add i32 %v528, 16
  %v530 = insertelement <2 x float> undef, float %v437, i32 0
  %v531 = insertelement <2 x float> %v530, float %v438, i32 1
  %v532 = getelementptr float, ptr addrspace(1) %c, i32 %v529
  store <2 x float> %v531, ptr addrspace(1) %v532, align 8
  %v533 = add i32 %v488, 0
  %v534 = shl i32 %v533, 6
  %v535 = add i32 %v534, %v490
  %v536 = add i32 %v535, 24
  %v537 = insertelement <2 x float> undef, float %v440, i32 0
  %v538 = insertelement <2 x float> %v537, float %v441, i32 1
  %v539 = getelementptr float, ptr addrspace(1) %c, i32 %v536
  store <2 x float> %v538, ptr addrspace(1) %v539, align 8
  %v540 = add i32 %v488, 8
  %v541 = shl i32 %v540, 6
  %v542 = add i32 %v541, %v490
  %v543 = add i32 %v542, 24
  %v544 = insertelement <2 x float> undef, float %v442, i32 0
  %v545 = insertelement <2 x float> %v544, float %v443, i32 1
  %v546 = getelementptr float, ptr addrspace(1) %c, i32 %v543
  store <2 x float> %v545, ptr addrspace(1) %v546, align 8
  %v547 = add i32 %v488, 0
  %v548 = shl i32 %v547, 6
  %v549 = add i32 %v548, %v490
  %v550 = add i32 %v549, 32
  %v551 = insertelement <2 x float> undef, float %v456, i32 0
  %v552 = insertelement <2 x float> %v551, float %v457, i32 1
  %v553 = getelementptr float, ptr addrspace(1) %c, i32 %v550
  store <2 x float> %v552, ptr addrspace(1) %v553, align 8
  %v554 = add i32 %v488, 8
  %v555 = shl i32 %v554, 6
  %v556 = add i32 %v555, %v490
  %v557 = add i32 %v556, 32
  %v558 = insertelement <2 x float> undef, float %v458, i32 0
  %v559 = insertelement <2 x float> %v558, float %v459, i32 1
  %v560 = getelementptr float, ptr addrspace(1) %c, i32 %v557
  store <2 x float> %v559, ptr addrspace(1) %v560, align 8
  %v561 = add i32 %v488, 0
  %v562 = shl i32 %v561, 6
  %v563 = add i32 %v562, %v490
  %v564 = add i32 %v563, 40
  %v565 = insertelement <2 x float> undef, float %v461, i32 0
  %v566 = insertelement <2 x float> %v565, float %v462, i32 1
  %v567 = getelementptr float, ptr addrspace(1) %c, i32 %v564
  store <2 x float> %v566, ptr addrspace(1) %v567, align 8
  %v568 = add i32 %v488, 8
  %v569 = shl i32 %v568, 6
  %v570 = add i32 %v569, %v490
  %v571 = add i32 %v570, 40
  %v572 = insertelement <2 x float> undef, float %v463, i32 0
  %v573 = insertelement <2 x float> %v572, float %v464, i32 1
  %v574 = getelementptr float, ptr addrspace(1) %c, i32 %v571
  store <2 x float> %v573, ptr addrspace(1) %v574, align 8
  %v575 = add i32 %v488, 0
  %v576 = shl i32 %v575, 6
  %v577 = add i32 %v576, %v490
  %v578 = add i32 %v577, 48
  %v579 = insertelement <2 x float> undef, float %v477, i32 0
  %v580 = insertelement <2 x float> %v579, float %v478, i32 1
  %v581 = getelementptr float, ptr addrspace(1) %c, i32 %v578
  store <2 x float> %v580, ptr addrspace(1) %v581, align 8
  %v582 = add i32 %v488, 8
  %v583 = shl i32 %v582, 6
  %v584 = add i32 %v583, %v490
  %v585 = add i32 %v584, 48
  %v586 = insertelement <2 x float> undef, float %v479, i32 0
  %v587 = insertelement <2 x float> %v586, float %v480, i32 1
  %v588 = getelementptr float, ptr addrspace(1) %c, i32 %v585
  store <2 x float> %v587, ptr addrspace(1) %v588, align 8
  %v589 = add i32 %v488, 0
  %v590 = shl i32 %v589, 6
  %v591 = add i32 %v590, %v490
  %v592 = add i32 %v591, 56
  %v593 = insertelement <2 x float> undef, float %v482, i32 0
  %v594 = insertelement <2 x float> %v593, float %v483, i32 1
  %v595 = getelementptr float, ptr addrspace(1) %c, i32 %v592
  store <2 x float> %v594, ptr addrspace(1) %v595, align 8
  %v596 = add i32 %v488, 8
  %v597 = shl i32 %v596, 6
  %v598 = add i32 %v597, %v490
  %v599 = add i32 %v598, 56
  %v600 = insertelement <2 x float> undef, float %v484, i32 0
  %v601 = insertelement <2 x float> %v600, float %v485, i32 1
  %v602 = getelementptr float, ptr addrspace(1) %c, i32 %v599
  store <2 x float> %v601, ptr addrspace(1) %v602, align 8
  ret void
}

define ptx_kernel void @gemm64_early(ptr addrspace(1) %a, ptr addrspace(1) %b, ptr addrspace(1) %c) {
  %v1 = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %v2 = and i32 %v1, 31
  %v3 = lshr i32 %v1, 5
  %v4 = add i32 %v1, 0
  %v5 = lshr i32 %v4, 2
  %v6 = and i32 %v4, 3
  %v7 = shl i32 %v6, 4
  %v8 = shl i32 %v5, 6
  %v9 = add i32 %v8, %v7
  %v10 = add i32 %v9, 0
  %v11 = ptrtoint ptr addrspace(3) @stages to i32
  %v12 = add i32 %v11, %v10
  %v13 = shl i32 %v5, 7
  %v14 = add i32 %v13, %v7
  %v15 = add i32 %v14, 0
  %v16 = getelementptr i8, ptr addrspace(1) %a, i32 %v15
  call void asm sideeffect "cp.async.cg.shared.global [$0], [$1], 16;", "r,l,~{memory}"(i32 %v12, ptr addrspace(1) %v16)
  %v17 = lshr i32 %v4, 3
  %v18 = and i32 %v4, 7
  %v19 = shl i32 %v18, 4
  %v20 = shl i32 %v17, 7
  %v21 = add i32 %v20, %v19
  %v22 = add i32 %v21, 4096
  %v23 = ptrtoint ptr addrspace(3) @stages to i32
  %v24 = add i32 %v23, %v22
  %v25 = add i32 %v21, 0
  %v26 = getelementptr i8, ptr addrspace(1) %b, i32 %v25
  call void asm sideeffect "cp.async.cg.shared.global [$0], [$1], 16;", "r,l,~{memory}"(i32 %v24, ptr addrspace(1) %v26)
  %v27 = add i32 %v1, 128
  %v28 = lshr i32 %v27, 2
  %v29 = and i32 %v27, 3
  %v30 = shl i32 %v29, 4
  %v31 = shl i32 %v28, 6
  %v32 = add i32 %v31, %v30
  %v33 = add i32 %v32, 0
  %v34 = ptrtoint ptr addrspace(3) @stages to i32
  %v35 = add i32 %v34, %v33
  %v36 = shl i32 %v28, 7
  %v37 = add i32 %v36, %v30
  %v38 = add i32 %v37, 0
  %v39 = getelementptr i8, ptr addrspace(1) %a, i32 %v38
  call void asm sideeffect "cp.async.cg.shared.global [$0], [$1], 16;", "r,l,~{memory}"(i32 %v35, ptr addrspace(1) %v39)
  %v40 = lshr i32 %v27, 3
  %v41 = and i32 %v27, 7
  %v42 = shl i32 %v41, 4
  %v43 = shl i32 %v40, 7
  %v44 = add i32 %v43, %v42
  %v45 = add i32 %v44, 4096
  %v46 = ptrtoint ptr addrspace(3) @stages to i32
  %v47 = add i32 %v46, %v45
  %v48 = add i32 %v44, 0
  %v49 = getelementptr i8, ptr addrspace(1) %b, i32 %v48
  call void asm sideeffect "cp.async.cg.shared.global [$0], [$1], 16;", "r,l,~{memory}"(i32 %v47, ptr addrspace(1) %v49)
  call void asm sideeffect "cp.async.commit_group;", "~{memory}"()
  %v50 = add i32 %v1, 0
  %v51 = lshr i32 %v50, 2
  %v52 = and i32 %v50, 3
  %v53 = shl i32 %v52, 4
  %v54 = shl i32 %v51, 6
  %v55 = add i32 %v54, %v53
  %v56 = add i32 %v55, 8192
  %v57 = ptrtoint ptr addrspace(3) @stages to i32
  %v58 = add i32 %v57, %v56
  %v59 = shl i32 %v51, 7
  %v60 = add i32 %v59, %v53
  %v61 = add i32 %v60, 64
  %v62 = getelementptr i8, ptr addrspace(1) %a, i32 %v61
  call void asm sideeffect "cp.async.cg.shared.global [$0], [$1], 16;", "r,l,~{memory}"(i32 %v58, ptr addrspace(1) %v62)
  %v63 = lshr i32 %v50, 3
  %v64 = and i32 %v50, 7
  %v65 = shl i32 %v64, 4
  %v66 = shl i32 %v63, 7
  %v67 = add i32 %v66, %v65
  %v68 = add i32 %v67, 12288
  %v69 = ptrtoint ptr addrspace(3) @stages to i32
  %v70 = add i32 %v69, %v68
  %v71 = add i32 %v67, 4096
  %v72 = getelementptr i8, ptr addrspace(1) %b, i32 %v71
  call void asm sideeffect "cp.async.cg.shared.global [$0], [$1], 16;", "r,l,~{memory}"(i32 %v70, ptr addrspace(1) %v72)
  %v73 = add i32 %v1, 128
  %v74 = lshr i32 %v73, 2
  %v75 = and i32 %v73, 3
  %v76 = shl i32 %v75, 4
  %v77 = shl i32 %v74, 6
  %v78 = add i32 %v77, %v76
  %v79 = add i32 %v78, 8192
  %v80 = ptrtoint ptr addrspace(3) @stages to i32
  %v81 = add i32 %v80, %v79
  %v82 = shl i32 %v74, 7
  %v83 = add i32 %v82, %v76
  %v84 = add i32 %v83, 64
  %v85 = getelementptr i8, ptr addrspace(1) %a, i32 %v84
  call void asm sideeffect "cp.async.cg.shared.global [$0], [$1], 16;", "r,l,~{memory}"(i32 %v81, ptr addrspace(1) %v85)
  %v86 = lshr i32 %v73, 3
  %v87 = and i32 %v73, 7
  %v88 = shl i32 %v87, 4
  %v89 = shl i32 %v86, 7
  %v90 = add i32 %v89, %v88
  %v91 = add i32 %v90, 12288
  %v92 = ptrtoint ptr addrspace(3) @stages to i32
  %v93 = add i32 %v92, %v91
  %v94 = add i32 %v90, 4096
  %v95 = getelementptr i8, ptr addrspace(1) %b, i32 %v94
  call void asm sideeffect "cp.async.cg.shared.global [$0], [$1], 16;", "r,l,~{memory}"(i32 %v93, ptr addrspace(1) %v95)
  call void asm sideeffect "cp.async.commit_group;", "~{memory}"()
  %v96 = and i32 %v2, 15
  %v97 = lshr i32 %v2, 4
  call void asm sideeffect "cp.async.wait_group $0;", "n,~{memory}"(i32 2)
  call void @llvm.nvvm.barrier0()
  %v98 = shl i32 %v3, 4
  %v99 = add i32 %v98, %v96
  %v100 = shl i32 %v99, 6
  %v101 = shl i32 %v97, 4
  %v102 = add i32 %v100, %v101
  %v103 = add i32 %v102, 0
  %v104 = ptrtoint ptr addrspace(3) @stages to i32
  %v105 = add i32 %v104, %v103
  %v106 = call {i32, i32, i32, i32} asm sideeffect "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {$0, $1, $2, $3}, [$4];", "=r,=r,=r,=r,r,~{memory}"(i32 %v105) #0
  %v107 = extractvalue {i32, i32, i32, i32} %v106, 0
  %v108 = extractvalue {i32, i32, i32, i32} %v106, 1
  %v109 = extractvalue {i32, i32, i32, i32} %v106, 2
  %v110 = extractvalue {i32, i32, i32, i32} %v106, 3
  %v111 = shl i32 %v96, 7
  %v112 = shl i32 %v97, 4
  %v113 = add i32 %v111, %v112
  %v114 = add i32 %v113, 4096
  %v115 = ptrtoint ptr addrspace(3) @stages to i32
  %v116 = add i32 %v115, %v114
  %v117 = call {i32, i32, i32, i32} asm sideeffect "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {$0, $1, $2, $3}, [$4];", "=r,=r,=r,=r,r,~{memory}"(i32 %v116) #0
  %v118 = extractvalue {i32, i32, i32, i32} %v117, 0
  %v119 = extractvalue {i32, i32, i32, i32} %v117, 1
  %v120 = extractvalue {i32, i32, i32, i32} %v117, 2
  %v121 = extractvalue {i32, i32, i32, i32} %v117, 3
  %v122 = call {float, float, float, float} asm "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {$0, $1, $2, $3}, {$4, $5, $6, $7}, {$8, $9}, {$10, $11, $12, $13};", "=f,=f,=f,=f,r,r,r,r,r,r,f,f,f,f"(i32 %v107, i32 %v108, i32 %v109, i32 %v110, i32 %v118, i32 %v119, float 0.0, float 0.0, float 0.0, float 0.0) #0
  %v123 = extractvalue {float, float, float, float} %v122, 0
  %v124 = extractvalue {float, float, float, float} %v122, 1
  %v125 = extractvalue {float, float, float, float} %v122, 2
  %v126 = extractvalue {float, float, float, float} %v122, 3
  %v127 = call {float, float, float, float} asm "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {$0, $1, $2, $3}, {$4, $5, $6, $7}, {$8, $9}, {$10, $11, $12, $13};", "=f,=f,=f,=f,r,r,r,r,r,r,f,f,f,f"(i32 %v107, i32 %v108, i32 %v109, i32 %v110, i32 %v120, i32 %v121, float 0.0, float 0.0, float 0.0, float 0.0) #0
  %v128 = extractvalue {float, float, float, float} %v127, 0
  %v129 = extractvalue {float, float, float, float} %v127, 1
  %v130 = extractvalue {float, float, float, float} %v127, 2
  %v131 = extractvalue {float, float, float, float} %v127, 3
  %v132 = shl i32 %v96, 7
  %v133 = shl i32 %v97, 4
  %v134 = add i32 %v132, %v133
  %v135 = add i32 %v134, 4128
  %v136 = ptrtoint ptr addrspace(3) @stages to i32
  %v137 = add i32 %v136, %v135
  %v138 = call {i32, i32, i32, i32} asm sideeffect "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {$0, $1, $2, $3}, [$4];", "=r,=r,=r,=r,r,~{memory}"(i32 %v137) #0
  %v139 = extractvalue {i32, i32, i32, i32} %v138, 0
  %v140 = extractvalue {i32, i32, i32, i32} %v138, 1
  %v141 = extractvalue {i32, i32, i32, i32} %v138, 2
  %v142 = extractvalue {i32, i32, i32, i32} %v138, 3
  %v143 = call {float, float, float, float} asm "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {$0, $1, $2, $3}, {$4, $5, $6, $7}, {$8, $9}, {$10, $11, $12, $13};", "=f,=f,=f,=f,r,r,r,r,r,r,f,f,f,f"(i32 %v107, i32 %v108, i32 %v109, i32 %v110, i32 %v139, i32 %v140, float 0.0, float 0.0, float 0.0, float 0.0) #0
  %v144 = extractvalue {float, float, float, float} %v143, 0
  %v145 = extractvalue {float, float, float, float} %v143, 1
  %v146 = extractvalue {float, float, float, float} %v143, 2
  %v147 = extractvalue {float, float, float, float} %v143, 3
  %v148 = call {float, float, float, float} asm "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {$0, $1, $2, $3}, {$4, $5, $6, $7}, {$8, $9}, {$10, $11, $12, $13};", "=f,=f,=f,=f,r,r,r,r,r,r,f,f,f,f"(i32 %v107, i32 %v108, i32 %v109, i32 %v110, i32 %v141, i32 %v142, float 0.0, float 0.0, float 0.0, float 0.0) #0
  %v149 = extractvalue {float, float, float, float} %v148, 0
  %v150 = extractvalue {float, float, float, float} %v148, 1
  %v151 = extractvalue {float, float, float, float} %v148, 2
  %v152 = extractvalue {float, float, float, float} %v148, 3
  %v153 = shl i32 %v96, 7
  %v154 = shl i32 %v97, 4
  %v155 = add i32 %v153, %v154
  %v156 = add i32 %v155, 4160
  %v157 = ptrtoint ptr addrspace(3) @stages to i32
  %v158 = add i32 %v157, %v156
  %v159 = call {i32, i32, i32, i32} asm sideeffect "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {$0, $1, $2, $3}, [$4];", "=r,=r,=r,=r,r,~{memory}"(i32 %v158) #0
  %v160 = extractvalue {i32, i32, i32, i32} %v159, 0
  %v161 = extractvalue {i32, i32, i32, i32} %v159, 1
  %v162 = extractvalue {i32, i32, i32, i32} %v159, 2
  %v163 = extractvalue {i32, i32, i32, i32} %v159, 3
  %v164 = call {float, float, float, float} asm "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {$0, $1, $2, $3}, {$4, $5, $6, $7}, {$8, $9}, {$10, $11, $12, $13};", "=f,=f,=f,=f,r,r,r,r,r,r,f,f,f,f"(i32 %v107, i32 %v108, i32 %v109, i32 %v110, i32 %v160, i32 %v161, float 0.0, float 0.0, float 0.0, float 0.0) #0
  %v165 = extractvalue {float, float, float, float} %v164, 0
  %v166 = extractvalue {float, float, float, float} %v164, 1
  %v167 = extractvalue {float, float, float, float} %v164, 2
  %v168 = extractvalue {float, float, float, float} %v164, 3
  %v169 = call {float, float, float, float} asm "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {$0, $1, $2, $3}, {$4, $5, $6, $7}, {$8, $9}, {$10, $11, $12, $13};", "=f,=f,=f,=f,r,r,r,r,r,r,f,f,f,f"(i32 %v107, i32 %v108, i32 %v109, i32 %v110, i32 %v162, i32 %v163, float 0.0, float 0.0, float 0.0, float 0.0) #0
  %v170 = extractvalue {float, float, float, float} %v169, 0
  %v171 = extractvalue {float, float, float, float} %v169, 1
  %v172 = extractvalue {float, float, float, float} %v169, 2
  %v173 = extractvalue {float, float, float, float} %v169, 3
  %v174 = shl i32 %v96, 7
  %v175 = shl i32 %v97, 4
  %v176 = add i32 %v174, %v175
  %v177 = add i32 %v176, 4192
  %v178 = ptrtoint ptr addrspace(3) @stages to i32
  %v179 = add i32 %v178, %v177
  %v180 = call {i32, i32, i32, i32} asm sideeffect "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {$0, $1, $2, $3}, [$4];", "=r,=r,=r,=r,r,~{memory}"(i32 %v179) #0
  %v181 = extractvalue {i32, i32, i32, i32} %v180, 0
  %v182 = extractvalue {i32, i32, i32, i32} %v180, 1
  %v183 = extractvalue {i32, i32, i32, i32} %v180, 2
  %v184 = extractvalue {i32, i32, i32, i32} %v180, 3
  %v185 = call {float, float, float, float} asm "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {$0, $1, $2, $3}, {$4, $5, $6, $7}, {$8, $9}, {$10, $11, $12, $13};", "=f,=f,=f,=f,r,r,r,r,r,r,f,f,f,f"(i32 %v107, i32 %v108, i32 %v109, i32 %v110, i32 %v181, i32 %v182, float 0.0, float 0.0, float 0.0, float 0.0) #0
  %v186 = extractvalue {float, float, float, float} %v185, 0
  %v187 = extractvalue {float, float, float, float} %v185, 1
  %v188 = extractvalue {float, float, float, float} %v185, 2
  %v189 = extractvalue {float, float, float, float} %v185, 3
  %v190 = call {float, float, float, float} asm "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {$0, $1, $2, $3}, {$4, $5, $6, $7}, {$8, $9}, {$10, $11, $12, $13};", "=f,=f,=f,=f,r,r,r,r,r,r,f,f,f,f"(i32 %v107, i32 %v108, i32 %v109, i32 %v110, i32 %v183, i32 %v184, float 0.0, float 0.0, float 0.0, float 0.0) #0
  %v191 = extractvalue {float, float, float, float} %v190, 0
  %v192 = extractvalue {float, float, float, float} %v190, 1
  %v193 = extractvalue {float, float, float, float} %v190, 2
  %v194 = extractvalue {float, float, float, float} %v190, 3
  %v195 = shl i32 %v3, 4
  %v196 = add i32 %v195, %v96
  %v197 = shl i32 %v196, 6
  %v198 = shl i32 %v97, 4
  %v199 = add i32 %v197, %v198
  %v200 = add i32 %v199, 32
  %v201 = ptrtoint ptr addrspace(3) @stages to i32
  %v202 = add i32 %v201, %v200
  %v203 = call {i32, i32, i32, i32} asm sideeffect "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {$0, $1, $2, $3}, [$4];", "=r,=r,=r,=r,r,~{memory}"(i32 %v202) #0
  %v204 = extractvalue {i32, i32, i32, i32} %v203, 0
  %v205 = extractvalue {i32, i32, i32, i32} %v203, 1
  %v206 = extractvalue {i32, i32, i32, i32} %v203, 2
  %v207 = extractvalue {i32, i32, i32, i32} %v203, 3
  %v208 = shl i32 %v96, 7
  %v209 = shl i32 %v97, 4
  %v210 = add i32 %v208, %v209
  %v211 = add i32 %v210, 6144
  %v212 = ptrtoint ptr addrspace(3) @stages to i32
  %v213 = add i32 %v212, %v211
  %v214 = call {i32, i32, i32, i32} asm sideeffect "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {$0, $1, $2, $3}, [$4];", "=r,=r,=r,=r,r,~{memory}"(i32 %v213) #0
  %v215 = extractvalue {i32, i32, i32, i32} %v214, 0
  %v216 = extractvalue {i32, i32, i32, i32} %v214, 1
  %v217 = extractvalue {i32, i32, i32, i32} %v214, 2
  %v218 = extractvalue {i32, i32, i32, i32} %v214, 3
  %v219 = call {float, float, float, float} asm "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {$0, $1, $2, $3}, {$4, $5, $6, $7}, {$8, $9}, {$10, $11, $12, $13};", "=f,=f,=f,=f,r,r,r,r,r,r,f,f,f,f"(i32 %v204, i32 %v205, i32 %v206, i32 %v207, i32 %v215, i32 %v216, float %v123, float %v124, float %v125, float %v126) #0
  %v220 = extractvalue {float, float, float, float} %v219, 0
  %v221 = extractvalue {float, float, float, float} %v219, 1
  %v222 = extractvalue {float, float, float, float} %v219, 2
  %v223 = extractvalue {float, float, float, float} %v219, 3
  %v224 = call {float, float, float, float} asm "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {$0, $1, $2, $3}, {$4, $5, $6, $7}, {$8, $9}, {$10, $11, $12, $13};", "=f,=f,=f,=f,r,r,r,r,r,r,f,f,f,f"(i32 %v204, i32 %v205, i32 %v206, i32 %v207, i32 %v217, i32 %v218, float %v128, float %v129, float %v130, float %v131) #0
  %v225 = extractvalue {float, float, float, float} %v224, 0
  %v226 = extractvalue {float, float, float, float} %v224, 1
  %v227 = extractvalue {float, float, float, float} %v224, 2
  %v228 = extractvalue {float, float, float, float} %v224, 3
  %v229 = shl i32 %v96, 7
  %v230 = shl i32 %v97, 4
  %v231 = add i32 %v229, %v230
  %v232 = add i32 %v231, 6176
  %v233 = ptrtoint ptr addrspace(3) @stages to i32
  %v234 = add i32 %v233, %v232
  %v235 = call {i32, i32, i32, i32} asm sideeffect "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {$0, $1, $2, $3}, [$4];", "=r,=r,=r,=r,r,~{memory}"(i32 %v234) #0
  %v236 = extractvalue {i32, i32, i32, i32} %v235, 0
  %v237 = extractvalue {i32, i32, i32, i32} %v235, 1
  %v238 = extractvalue {i32, i32, i32, i32} %v235, 2
  %v239 = extractvalue {i32, i32, i32, i32} %v235, 3
  %v240 = call {float, float, float, float} asm "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {$0, $1, $2, $3}, {$4, $5, $6, $7}, {$8, $9}, {$10, $11, $12, $13};", "=f,=f,=f,=f,r,r,r,r,r,r,f,f,f,f"(i32 %v204, i32 %v205, i32 %v206, i32 %v207, i32 %v236, i32 %v237, float %v144, float %v145, float %v146, float %v147) #0
  %v241 = extractvalue {float, float, float, float} %v240, 0
  %v242 = extractvalue {float, float, float, float} %v240, 1
  %v243 = extractvalue {float, float, float, float} %v240, 2
  %v244 = extractvalue {float, float, float, float} %v240, 3
  %v245 = call {float, float, float, float} asm "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {$0, $1, $2, $3}, {$4, $5, $6, $7}, {$8, $9}, {$10, $11, $12, $13};", "=f,=f,=f,=f,r,r,r,r,r,r,f,f,f,f"(i32 %v204, i32 %v205, i32 %v206, i32 %v207, i32 %v238, i32 %v239, float %v149, float %v150, float %v151, float %v152) #0
  %v246 = extractvalue {float, float, float, float} %v245, 0
  %v247 = extractvalue {float, float, float, float} %v245, 1
  %v248 = extractvalue {float, float, float, float} %v245, 2
  %v249 = extractvalue {float, float, float, float} %v245, 3
  %v250 = shl i32 %v96, 7
  %v251 = shl i32 %v97, 4
  %v252 = add i32 %v250, %v251
  %v253 = add i32 %v252, 6208
  %v254 = ptrtoint ptr addrspace(3) @stages to i32
  %v255 = add i32 %v254, %v253
  %v256 = call {i32, i32, i32, i32} asm sideeffect "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {$0, $1, $2, $3}, [$4];", "=r,=r,=r,=r,r,~{memory}"(i32 %v255) #0
  %v257 = extractvalue {i32, i32, i32, i32} %v256, 0
  %v258 = extractvalue {i32, i32, i32, i32} %v256, 1
  %v259 = extractvalue {i32, i32, i32, i32} %v256, 2
  %v260 = extractvalue {i32, i32, i32, i32} %v256, 3
  %v261 = call {float, float, float, float} asm "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {$0, $1, $2, $3}, {$4, $5, $6, $7}, {$8, $9}, {$10, $11, $12, $13};", "=f,=f,=f,=f,r,r,r,r,r,r,f,f,f,f"(i32 %v204, i32 %v205, i32 %v206, i32 %v207, i32 %v257, i32 %v258, float %v165, float %v166, float %v167, float %v168) #0
  %v262 = extractvalue {float, float, float, float} %v261, 0
  %v263 = extractvalue {float, float, float, float} %v261, 1
  %v264 = extractvalue {float, float, float, float} %v261, 2
  %v265 = extractvalue {float, float, float, float} %v261, 3
  %v266 = call {float, float, float, float} asm "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {$0, $1, $2, $3}, {$4, $5, $6, $7}, {$8, $9}, {$10, $11, $12, $13};", "=f,=f,=f,=f,r,r,r,r,r,r,f,f,f,f"(i32 %v204, i32 %v205, i32 %v206, i32 %v207, i32 %v259, i32 %v260, float %v170, float %v171, float %v172, float %v173) #0
  %v267 = extractvalue {float, float, float, float} %v266, 0
  %v268 = extractvalue {float, float, float, float} %v266, 1
  %v269 = extractvalue {float, float, float, float} %v266, 2
  %v270 = extractvalue {float, float, float, float} %v266, 3
  %v271 = shl i32 %v96, 7
  %v272 = shl i32 %v97, 4
  %v273 = add i32 %v271, %v272
  %v274 = add i32 %v273, 6240
  %v275 = ptrtoint ptr addrspace(3) @stages to i32
  %v276 = add i32 %v275, %v274
  %v277 = call {i32, i32, i32, i32} asm sideeffect "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {$0, $1, $2, $3}, [$4];", "=r,=r,=r,=r,r,~{memory}"(i32 %v276) #0
  %v278 = extractvalue {i32, i32, i32, i32} %v277, 0
  %v279 = extractvalue {i32, i32, i32, i32} %v277, 1
  %v280 = extractvalue {i32, i32, i32, i32} %v277, 2
  %v281 = extractvalue {i32, i32, i32, i32} %v277, 3
  %v282 = call {float, float, float, float} asm "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {$0, $1, $2, $3}, {$4, $5, $6, $7}, {$8, $9}, {$10, $11, $12, $13};", "=f,=f,=f,=f,r,r,r,r,r,r,f,f,f,f"(i32 %v204, i32 %v205, i32 %v206, i32 %v207, i32 %v278, i32 %v279, float %v186, float %v187, float %v188, float %v189) #0
  %v283 = extractvalue {float, float, float, float} %v282, 0
  %v284 = extractvalue {float, float, float, float} %v282, 1
  %v285 = extractvalue {float, float, float, float} %v282, 2
  %v286 = extractvalue {float, float, float, float} %v282, 3
  %v287 = call {float, float, float, float} asm "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {$0, $1, $2, $3}, {$4, $5, $6, $7}, {$8, $9}, {$10, $11, $12, $13};", "=f,=f,=f,=f,r,r,r,r,r,r,f,f,f,f"(i32 %v204, i32 %v205, i32 %v206, i32 %v207, i32 %v280, i32 %v281, float %v191, float %v192, float %v193, float %v194) #0
  %v288 = extractvalue {float, float, float, float} %v287, 0
  %v289 = extractvalue {float, float, float, float} %v287, 1
  %v290 = extractvalue {float, float, float, float} %v287, 2
  %v291 = extractvalue {float, float, float, float} %v287, 3
  call void asm sideeffect "cp.async.wait_group $0;", "n,~{memory}"(i32 0)
  call void @llvm.nvvm.barrier0()
  %v292 = shl i32 %v3, 4
  %v293 = add i32 %v292, %v96
  %v294 = shl i32 %v293, 6
  %v295 = shl i32 %v97, 4
  %v296 = add i32 %v294, %v295
  %v297 = add i32 %v296, 8192
  %v298 = ptrtoint ptr addrspace(3) @stages to i32
  %v299 = add i32 %v298, %v297
  %v300 = call {i32, i32, i32, i32} asm sideeffect "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {$0, $1, $2, $3}, [$4];", "=r,=r,=r,=r,r,~{memory}"(i32 %v299) #0
  %v301 = extractvalue {i32, i32, i32, i32} %v300, 0
  %v302 = extractvalue {i32, i32, i32, i32} %v300, 1
  %v303 = extractvalue {i32, i32, i32, i32} %v300, 2
  %v304 = extractvalue {i32, i32, i32, i32} %v300, 3
  %v305 = shl i32 %v96, 7
  %v306 = shl i32 %v97, 4
  %v307 = add i32 %v305, %v306
  %v308 = add i32 %v307, 12288
  %v309 = ptrtoint ptr addrspace(3) @stages to i32
  %v310 = add i32 %v309, %v308
  %v311 = call {i32, i32, i32, i32} asm sideeffect "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {$0, $1, $2, $3}, [$4];", "=r,=r,=r,=r,r,~{memory}"(i32 %v310) #0
  %v312 = extractvalue {i32, i32, i32, i32} %v311, 0
  %v313 = extractvalue {i32, i32, i32, i32} %v311, 1
  %v314 = extractvalue {i32, i32, i32, i32} %v311, 2
  %v315 = extractvalue {i32, i32, i32, i32} %v311, 3
  %v316 = call {float, float, float, float} asm "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {$0, $1, $2, $3}, {$4, $5, $6, $7}, {$8, $9}, {$10, $11, $12, $13};", "=f,=f,=f,=f,r,r,r,r,r,r,f,f,f,f"(i32 %v301, i32 %v302, i32 %v303, i32 %v304, i32 %v312, i32 %v313, float %v220, float %v221, float %v222, float %v223) #0
  %v317 = extractvalue {float, float, float, float} %v316, 0
  %v318 = extractvalue {float, float, float, float} %v316, 1
  %v319 = extractvalue {float, float, float, float} %v316, 2
  %v320 = extractvalue {float, float, float, float} %v316, 3
  %v321 = call {float, float, float, float} asm "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {$0, $1, $2, $3}, {$4, $5, $6, $7}, {$8, $9}, {$10, $11, $12, $13};", "=f,=f,=f,=f,r,r,r,r,r,r,f,f,f,f"(i32 %v301, i32 %v302, i32 %v303, i32 %v304, i32 %v314, i32 %v315, float %v225, float %v226, float %v227, float %v228) #0
  %v322 = extractvalue {float, float, float, float} %v321, 0
  %v323 = extractvalue {float, float, float, float} %v321, 1
  %v324 = extractvalue {float, float, float, float} %v321, 2
  %v325 = extractvalue {float, float, float, float} %v321, 3
  %v326 = shl i32 %v96, 7
  %v327 = shl i32 %v97, 4
  %v328 = add i32 %v326, %v327
  %v329 = add i32 %v328, 12320
  %v330 = ptrtoint ptr addrspace(3) @stages to i32
  %v331 = add i32 %v330, %v329
  %v332 = call {i32, i32, i32, i32} asm sideeffect "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {$0, $1, $2, $3}, [$4];", "=r,=r,=r,=r,r,~{memory}"(i32 %v331) #0
  %v333 = extractvalue {i32, i32, i32, i32} %v332, 0
  %v334 = extractvalue {i32, i32, i32, i32} %v332, 1
  %v335 = extractvalue {i32, i32, i32, i32} %v332, 2
  %v336 = extractvalue {i32, i32, i32, i32} %v332, 3
  %v337 = call {float, float, float, float} asm "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {$0, $1, $2, $3}, {$4, $5, $6, $7}, {$8, $9}, {$10, $11, $12, $13};", "=f,=f,=f,=f,r,r,r,r,r,r,f,f,f,f"(i32 %v301, i32 %v302, i32 %v303, i32 %v304, i32 %v333, i32 %v334, float %v241, float %v242, float %v243, float %v244) #0
  %v338 = extractvalue {float, float, float, float} %v337, 0
  %v339 = extractvalue {float, float, float, float} %v337, 1
  %v340 = extractvalue {float, float, float, float} %v337, 2
  %v341 = extractvalue {float, float, float, float} %v337, 3
  %v342 = call {float, float, float, float} asm "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {$0, $1, $2, $3}, {$4, $5, $6, $7}, {$8, $9}, {$10, $11, $12, $13};", "=f,=f,=f,=f,r,r,r,r,r,r,f,f,f,f"(i32 %v301, i32 %v302, i32 %v303, i32 %v304, i32 %v335, i32 %v336, float %v246, float %v247, float %v248, float %v249) #0
  %v343 = extractvalue {float, float, float, float} %v342, 0
  %v344 = extractvalue {float, float, float, float} %v342, 1
  %v345 = extractvalue {float, float, float, float} %v342, 2
  %v346 = extractvalue {float, float, float, float} %v342, 3
  %v347 = shl i32 %v96, 7
  %v348 = shl i32 %v97, 4
  %v349 = add i32 %v347, %v348
  %v350 = add i32 %v349, 12352
  %v351 = ptrtoint ptr addrspace(3) @stages to i32
  %v352 = add i32 %v351, %v350
  %v353 = call {i32, i32, i32, i32} asm sideeffect "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {$0, $1, $2, $3}, [$4];", "=r,=r,=r,=r,r,~{memory}"(i32 %v352) #0
  %v354 = extractvalue {i32, i32, i32, i32} %v353, 0
  %v355 = extractvalue {i32, i32, i32, i32} %v353, 1
  %v356 = extractvalue {i32, i32, i32, i32} %v353, 2
  %v357 = extractvalue {i32, i32, i32, i32} %v353, 3
  %v358 = call {float, float, float, float} asm "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {$0, $1, $2, $3}, {$4, $5, $6, $7}, {$8, $9}, {$10, $11, $12, $13};", "=f,=f,=f,=f,r,r,r,r,r,r,f,f,f,f"(i32 %v301, i32 %v302, i32 %v303, i32 %v304, i32 %v354, i32 %v355, float %v262, float %v263, float %v264, float %v265) #0
  %v359 = extractvalue {float, float, float, float} %v358, 0
  %v360 = extractvalue {float, float, float, float} %v358, 1
  %v361 = extractvalue {float, float, float, float} %v358, 2
  %v362 = extractvalue {float, float, float, float} %v358, 3
  %v363 = call {float, float, float, float} asm "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {$0, $1, $2, $3}, {$4, $5, $6, $7}, {$8, $9}, {$10, $11, $12, $13};", "=f,=f,=f,=f,r,r,r,r,r,r,f,f,f,f"(i32 %v301, i32 %v302, i32 %v303, i32 %v304, i32 %v356, i32 %v357, float %v267, float %v268, float %v269, float %v270) #0
  %v364 = extractvalue {float, float, float, float} %v363, 0
  %v365 = extractvalue {float, float, float, float} %v363, 1
  %v366 = extractvalue {float, float, float, float} %v363, 2
  %v367 = extractvalue {float, float, float, float} %v363, 3
  %v368 = shl i32 %v96, 7
  %v369 = shl i32 %v97, 4
  %v370 = add i32 %v368, %v369
  %v371 = add i32 %v370, 12384
  %v372 = ptrtoint ptr addrspace(3) @stages to i32
  %v373 = add i32 %v372, %v371
  %v374 = call {i32, i32, i32, i32} asm sideeffect "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {$0, $1, $2, $3}, [$4];", "=r,=r,=r,=r,r,~{memory}"(i32 %v373) #0
  %v375 = extractvalue {i32, i32, i32, i32} %v374, 0
  %v376 = extractvalue {i32, i32, i32, i32} %v374, 1
  %v377 = extractvalue {i32, i32, i32, i32} %v374, 2
  %v378 = extractvalue {i32, i32, i32, i32} %v374, 3
  %v379 = call {float, float, float, float} asm "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {$0, $1, $2, $3}, {$4, $5, $6, $7}, {$8, $9}, {$10, $11, $12, $13};", "=f,=f,=f,=f,r,r,r,r,r,r,f,f,f,f"(i32 %v301, i32 %v302, i32 %v303, i32 %v304, i32 %v375, i32 %v376, float %v283, float %v284, float %v285, float %v286) #0
  %v380 = extractvalue {float, float, float, float} %v379, 0
  %v381 = extractvalue {float, float, float, float} %v379, 1
  %v382 = extractvalue {float, float, float, float} %v379, 2
  %v383 = extractvalue {float, float, float, float} %v379, 3
  %v384 = call {float, float, float, float} asm "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {$0, $1, $2, $3}, {$4, $5, $6, $7}, {$8, $9}, {$10, $11, $12, $13};", "=f,=f,=f,=f,r,r,r,r,r,r,f,f,f,f"(i32 %v301, i32 %v302, i32 %v303, i32 %v304, i32 %v377, i32 %v378, float %v288, float %v289, float %v290, float %v291) #0
  %v385 = extractvalue {float, float, float, float} %v384, 0
  %v386 = extractvalue {float, float, float, float} %v384, 1
  %v387 = extractvalue {float, float, float, float} %v384, 2
  %v388 = extractvalue {float, float, float, float} %v384, 3
  %v389 = shl i32 %v3, 4
  %v390 = add i32 %v389, %v96
  %v391 = shl i32 %v390, 6
  %v392 = shl i32 %v97, 4
  %v393 = add i32 %v391, %v392
  %v394 = add i32 %v393, 8224
  %v395 = ptrtoint ptr addrspace(3) @stages to i32
  %v396 = add i32 %v395, %v394
  %v397 = call {i32, i32, i32, i32} asm sideeffect "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {$0, $1, $2, $3}, [$4];", "=r,=r,=r,=r,r,~{memory}"(i32 %v396) #0
  %v398 = extractvalue {i32, i32, i32, i32} %v397, 0
  %v399 = extractvalue {i32, i32, i32, i32} %v397, 1
  %v400 = extractvalue {i32, i32, i32, i32} %v397, 2
  %v401 = extractvalue {i32, i32, i32, i32} %v397, 3
  %v402 = shl i32 %v96, 7
  %v403 = shl i32 %v97, 4
  %v404 = add i32 %v402, %v403
  %v405 = add i32 %v404, 14336
  %v406 = ptrtoint ptr addrspace(3) @stages to i32
  %v407 = add i32 %v406, %v405
  %v408 = call {i32, i32, i32, i32} asm sideeffect "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {$0, $1, $2, $3}, [$4];", "=r,=r,=r,=r,r,~{memory}"(i32 %v407) #0
  %v409 = extractvalue {i32, i32, i32, i32} %v408, 0
  %v410 = extractvalue {i32, i32, i32, i32} %v408, 1
  %v411 = extractvalue {i32, i32, i32, i32} %v408, 2
  %v412 = extractvalue {i32, i32, i32, i32} %v408, 3
  %v413 = call {float, float, float, float} asm "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {$0, $1, $2, $3}, {$4, $5, $6, $7}, {$8, $9}, {$10, $11, $12, $13};", "=f,=f,=f,=f,r,r,r,r,r,r,f,f,f,f"(i32 %v398, i32 %v399, i32 %v400, i32 %v401, i32 %v409, i32 %v410, float %v317, float %v318, float %v319, float %v320) #0
  %v414 = extractvalue {float, float, float, float} %v413, 0
  %v415 = extractvalue {float, float, float, float} %v413, 1
  %v416 = extractvalue {float, float, float, float} %v413, 2
  %v417 = extractvalue {float, float, float, float} %v413, 3
  %v418 = call {float, float, float, float} asm "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {$0, $1, $2, $3}, {$4, $5, $6, $7}, {$8, $9}, {$10, $11, $12, $13};", "=f,=f,=f,=f,r,r,r,r,r,r,f,f,f,f"(i32 %v398, i32 %v399, i32 %v400, i32 %v401, i32 %v411, i32 %v412, float %v322, float %v323, float %v324, float %v325) #0
  %v419 = extractvalue {float, float, float, float} %v418, 0
  %v420 = extractvalue {float, float, float, float} %v418, 1
  %v421 = extractvalue {float, float, float, float} %v418, 2
  %v422 = extractvalue {float, float, float, float} %v418, 3
  %v423 = shl i32 %v96, 7
  %v424 = shl i32 %v97, 4
  %v425 = add i32 %v423, %v424
  %v426 = add i32 %v425, 14368
  %v427 = ptrtoint ptr addrspace(3) @stages to i32
  %v428 = add i32 %v427, %v426
  %v429 = call {i32, i32, i32, i32} asm sideeffect "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {$0, $1, $2, $3}, [$4];", "=r,=r,=r,=r,r,~{memory}"(i32 %v428) #0
  %v430 = extractvalue {i32, i32, i32, i32} %v429, 0
  %v431 = extractvalue {i32, i32, i32, i32} %v429, 1
  %v432 = extractvalue {i32, i32, i32, i32} %v429, 2
  %v433 = extractvalue {i32, i32, i32, i32} %v429, 3
  %v434 = call {float, float, float, float} asm "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {$0, $1, $2, $3}, {$4, $5, $6, $7}, {$8, $9}, {$10, $11, $12, $13};", "=f,=f,=f,=f,r,r,r,r,r,r,f,f,f,f"(i32 %v398, i32 %v399, i32 %v400, i32 %v401, i32 %v430, i32 %v431, float %v338, float %v339, float %v340, float %v341) #0
  %v435 = extractvalue {float, float, float, float} %v434, 0
  %v436 = extractvalue {float, float, float, float} %v434, 1
  %v437 = extractvalue {float, float, float, float} %v434, 2
  %v438 = extractvalue {float, float, float, float} %v434, 3
  %v439 = call {float, float, float, float} asm "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {$0, $1, $2, $3}, {$4, $5, $6, $7}, {$8, $9}, {$10, $11, $12, $13};", "=f,=f,=f,=f,r,r,r,r,r,r,f,f,f,f"(i32 %v398, i32 %v399, i32 %v400, i32 %v401, i32 %v432, i32 %v433, float %v343, float %v344, float %v345, float %v346) #0
  %v440 = extractvalue {float, float, float, float} %v439, 0
  %v441 = extractvalue {float, float, float, float} %v439, 1
  %v442 = extractvalue {float, float, float, float} %v439, 2
  %v443 = extractvalue {float, float, float, float} %v439, 3
  %v444 = shl i32 %v96, 7
  %v445 = shl i32 %v97, 4
  %v446 = add i32 %v444, %v445
  %v447 = add i32 %v446, 14400
  %v448 = ptrtoint ptr addrspace(3) @stages to i32
  %v449 = add i32 %v448, %v447
  %v450 = call {i32, i32, i32, i32} asm sideeffect "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {$0, $1, $2, $3}, [$4];", "=r,=r,=r,=r,r,~{memory}"(i32 %v449) #0
  %v451 = extractvalue {i32, i32, i32, i32} %v450, 0
  %v452 = extractvalue {i32, i32, i32, i32} %v450, 1
  %v453 = extractvalue {i32, i32, i32, i32} %v450, 2
  %v454 = extractvalue {i32, i32, i32, i32} %v450, 3
  %v455 = call {float, float, float, float} asm "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {$0, $1, $2, $3}, {$4, $5, $6, $7}, {$8, $9}, {$10, $11, $12, $13};", "=f,=f,=f,=f,r,r,r,r,r,r,f,f,f,f"(i32 %v398, i32 %v399, i32 %v400, i32 %v401, i32 %v451, i32 %v452, float %v359, float %v360, float %v361, float %v362) #0
  %v456 = extractvalue {float, float, float, float} %v455, 0
  %v457 = extractvalue {float, float, float, float} %v455, 1
  %v458 = extractvalue {float, float, float, float} %v455, 2
  %v459 = extractvalue {float, float, float, float} %v455, 3
  %v460 = call {float, float, float, float} asm "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {$0, $1, $2, $3}, {$4, $5, $6, $7}, {$8, $9}, {$10, $11, $12, $13};", "=f,=f,=f,=f,r,r,r,r,r,r,f,f,f,f"(i32 %v398, i32 %v399, i32 %v400, i32 %v401, i32 %v453, i32 %v454, float %v364, float %v365, float %v366, float %v367) #0
  %v461 = extractvalue {float, float, float, float} %v460, 0
  %v462 = extractvalue {float, float, float, float} %v460, 1
  %v463 = extractvalue {float, float, float, float} %v460, 2
  %v464 = extractvalue {float, float, float, float} %v460, 3
  %v465 = shl i32 %v96, 7
  %v466 = shl i32 %v97, 4
  %v467 = add i32 %v465, %v466
  %v468 = add i32 %v467, 14432
  %v469 = ptrtoint ptr addrspace(3) @stages to i32
  %v470 = add i32 %v469, %v468
  %v471 = call {i32, i32, i32, i32} asm sideeffect "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {$0, $1, $2, $3}, [$4];", "=r,=r,=r,=r,r,~{memory}"(i32 %v470) #0
  %v472 = extractvalue {i32, i32, i32, i32} %v471, 0
  %v473 = extractvalue {i32, i32, i32, i32} %v471, 1
  %v474 = extractvalue {i32, i32, i32, i32} %v471, 2
  %v475 = extractvalue {i32, i32, i32, i32} %v471, 3
  %v476 = call {float, float, float, float} asm "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {$0, $1, $2, $3}, {$4, $5, $6, $7}, {$8, $9}, {$10, $11, $12, $13};", "=f,=f,=f,=f,r,r,r,r,r,r,f,f,f,f"(i32 %v398, i32 %v399, i32 %v400, i32 %v401, i32 %v472, i32 %v473, float %v380, float %v381, float %v382, float %v383) #0
  %v477 = extractvalue {float, float, float, float} %v476, 0
  %v478 = extractvalue {float, float, float, float} %v476, 1
  %v479 = extractvalue {float, float, float, float} %v476, 2
  %v480 = extractvalue {float, float, float, float} %v476, 3
  %v481 = call {float, float, float, float} asm "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {$0, $1, $2, $3}, {$4, $5, $6, $7}, {$8, $9}, {$10, $11, $12, $13};", "=f,=f,=f,=f,r,r,r,r,r,r,f,f,f,f"(i32 %v398, i32 %v399, i32 %v400, i32 %v401, i32 %v474, i32 %v475, float %v385, float %v386, float %v387, float %v388) #0
  %v482 = extractvalue {float, float, float, float} %v481, 0
  %v483 = extractvalue {float, float, float, float} %v481, 1
  %v484 = extractvalue {float, float, float, float} %v481, 2
  %v485 = extractvalue {float, float, float, float} %v481, 3
  %v486 = shl i32 %v3, 4
  %v487 = lshr i32 %v2, 2
  %v488 = add i32 %v486, %v487
  %v489 = and i32 %v2, 3
  %v490 = shl i32 %v489, 1
  %v491 = add i32 %v488, 0
  %v492 = shl i32 %v491, 6
  %v493 = add i32 %v492, %v490
  %v494 = add i32 %v493, 0
  %v495 = insertelement <2 x float> undef, float %v414, i32 0
  %v496 = insertelement <2 x float> %v495, float %v415, i32 1
  %v497 = getelementptr float, ptr addrspace(1) %c, i32 %v494
  store <2 x float> %v496, ptr addrspace(1) %v497, align 8
  %v498 = add i32 %v488, 8
  %v499 = shl i32 %v498, 6
  %v500 = add i32 %v499, %v490
  %v501 = add i32 %v500, 0
  %v502 = insertelement <2 x float> undef, float %v416, i32 0
  %v503 = insertelement <2 x float> %v502, float %v417, i32 1
  %v504 = getelementptr float, ptr addrspace(1) %c, i32 %v501
  store <2 x float> %v503, ptr addrspace(1) %v504, align 8
  %v505 = add i32 %v488, 0
  %v506 = shl i32 %v505, 6
  %v507 = add i32 %v506, %v490
  %v508 = add i32 %v507, 8
  %v509 = insertelement <2 x float> undef, float %v419, i32 0
  %v510 = insertelement <2 x float> %v509, float %v420, i32 1
  %v511 = getelementptr float, ptr addrspace(1) %c, i32 %v508
  store <2 x float> %v510, ptr addrspace(1) %v511, align 8
  %v512 = add i32 %v488, 8
  %v513 = shl i32 %v512, 6
  %v514 = add i32 %v513, %v490
  %v515 = add i32 %v514, 8
  %v516 = insertelement <2 x float> undef, float %v421, i32 0
  %v517 = insertelement <2 x float> %v516, float %v422, i32 1
  %v518 = getelementptr float, ptr addrspace(1) %c, i32 %v515
  store <2 x float> %v517, ptr addrspace(1) %v518, align 8
  %v519 = add i32 %v488, 0
  %v520 = shl i32 %v519, 6
  %v521 = add i32 %v520, %v490
  %v522 = add i32 %v521, 16
  %v523 = insertelement <2 x float> undef, float %v435, i32 0
  %v524 = insertelement <2 x float> %v523, float %v436, i32 1
  %v525 = getelementptr float, ptr addrspace(1) %c, i32 %v522
  store <2 x float> %v524, ptr addrspace(1) %v525, align 8
  %v526 = add i32 %v488, 8
  %v527 = shl i32 %v526, 6
  %v528 = add i32 %v527, %v490
  %v529 = add i32 %v528, 16
  %v530 = insertelement <2 x float> undef, float %v437, i32 0
  %v531 = insertelement <2 x float> %v530, float %v438, i32 1
  %v532 = getelementptr float, ptr addrspace(1) %c, i32 %v529
  store <2 x float> %v531, ptr addrspace(1) %v532, align 8
  %v533 = add i32 %v488, 0
  %v534 = shl i32 %v533, 6
  %v535 = add i32 %v534, %v490
  %v536 = add i32 %v535, 24
  %v537 = insertelement <2 x float> undef, float %v440, i32 0
  %v538 = insertelement <2 x float> %v537, float %v441, i32 1
  %v539 = getelementptr float, ptr addrspace(1) %c, i32 %v536
  store <2 x float> %v538, ptr addrspace(1) %v539, align 8
  %v540 = add i32 %v488, 8
  %v541 = shl i32 %v540, 6
  %v542 = add i32 %v541, %v490
  %v543 = add i32 %v542, 24
  %v544 = insertelement <2 x float> undef, float %v442, i32 0
  %v545 = insertelement <2 x float> %v544, float %v443, i32 1
  %v546 = getelementptr float, ptr addrspace(1) %c, i32 %v543
  store <2 x float> %v545, ptr addrspace(1) %v546, align 8
  %v547 = add i32 %v488, 0
  %v548 = shl i32 %v547, 6
  %v549 = add i32 %v548, %v490
  %v550 = add i32 %v549, 32
  %v551 = insertelement <2 x float> undef, float %v456, i32 0
  %v552 = insertelement <2 x float> %v551, float %v457, i32 1
  %v553 = getelementptr float, ptr addrspace(1) %c, i32 %v550
  store <2 x float> %v552, ptr addrspace(1) %v553, align 8
  %v554 = add i32 %v488, 8
  %v555 = shl i32 %v554, 6
  %v556 = add i32 %v555, %v490
  %v557 = add i32 %v556, 32
  %v558 = insertelement <2 x float> undef, float %v458, i32 0
  %v559 = insertelement <2 x float> %v558, float %v459, i32 1
  %v560 = getelementptr float, ptr addrspace(1) %c, i32 %v557
  store <2 x float> %v559, ptr addrspace(1) %v560, align 8
  %v561 = add i32 %v488, 0
  %v562 = shl i32 %v561, 6
  %v563 = add i32 %v562, %v490
  %v564 = add i32 %v563, 40
  %v565 = insertelement <2 x float> undef, float %v461, i32 0
  %v566 = insertelement <2 x float> %v565, float %v462, i32 1
  %v567 = getelementptr float, ptr addrspace(1) %c, i32 %v564
  store <2 x float> %v566, ptr addrspace(1) %v567, align 8
  %v568 = add i32 %v488, 8
  %v569 = shl i32 %v568, 6
  %v570 = add i32 %v569, %v490
  %v571 = add i32 %v570, 40
  %v572 = insertelement <2 x float> undef, float %v463, i32 0
  %v573 = insertelement <2 x float> %v572, float %v464, i32 1
  %v574 = getelementptr float, ptr addrspace(1) %c, i32 %v571
  store <2 x float> %v573, ptr addrspace(1) %v574, align 8
  %v575 = add i32 %v488, 0
  %v576 = shl i32 %v575, 6
  %v577 = add i32 %v576, %v490
  %v578 = add i32 %v577, 48
  %v579 = insertelement <2 x float> undef, float %v477, i32 0
  %v580 = insertelement <2 x float> %v579, float %v478, i32 1
  %v581 = getelementptr float, ptr addrspace(1) %c, i32 %v578
  store <2 x float> %v580, ptr addrspace(1) %v581, align 8
  %v582 = add i32 %v488, 8
  %v583 = shl i32 %v582, 6
  %v584 = add i32 %v583, %v490
  %v585 = add i32 %v584, 48
  %v586 = insertelement <2 x float> undef, float %v479, i32 0
  %v587 = insertelement <2 x float> %v586, float %v480, i32 1
  %v588 = getelementptr float, ptr addrspace(1) %c, i32 %v585
  store <2 x float> %v587, ptr addrspace(1) %v588, align 8
  %v589 = add i32 %v488, 0
  %v590 = shl i32 %v589, 6
  %v591 = add i32 %v590, %v490
  %v592 = add i32 %v591, 56
  %v593 = insertelement <2 x float> undef, float %v482, i32 0
  %v594 = insertelement <2 x float> %v593, float %v483, i32 1
  %v595 = getelementptr float, ptr addrspace(1) %c, i32 %v592
  store <2 x float> %v594, ptr addrspace(1) %v595, align 8
  %v596 = add i32 %v488, 8
  %v597 = shl i32 %v596, 6
  %v598 = add i32 %v597, %v490
  %v599 = add i32 %v598, 56
  %v600 = insertelement <2 x float> undef, float %v484, i32 0
  %v601 = insertelement <2 x float> %v600, float %v485, i32 1
  %v602 = getelementptr float, ptr addrspace(1) %c, i32 %v599
  store <2 x float> %v601, ptr addrspace(1) %v602, align 8
  ret void
}

attributes #0 = { convergent nounwind }
