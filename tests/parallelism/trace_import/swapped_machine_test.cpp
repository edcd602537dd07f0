// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "parallelism/trace_import/swapped_machine.h"

#include "sim/units.h"

namespace trainyard {

TEST_CASE("kernels are known by the words in their names", "[swapped]") {
  for (const char* name :
       {"sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64", "nvjet_hsh_128x256_64x4",
        "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm>", "ampere_sgemm_128x64_tn",
        "Cijk_Alik_Bljk_HHS_BH_MT128x128x32", "void implicit_convolve_sgemm<float>",
        "sm80_xmma_fprop_implicit_gemm_f16f16"}) {
    REQUIRE(kind_of_kernel(name) == KernelKind::Product);
  }
  for (const char* name :
       {"void flash_fwd_kernel<Flash_fwd_kernel_traits>", "fmha_cutlassF_bf16_aligned_64x128_sm80",
        "triton_per_fused_scaled_dot_product_attention_3"}) {
    REQUIRE(kind_of_kernel(name) == KernelKind::Attention);
  }
  REQUIRE(kind_of_kernel("Memcpy HtoD (Pageable -> Device)") == KernelKind::HostCopy);
  REQUIRE(kind_of_kernel("Memcpy DtoD (Device -> Device)") == KernelKind::Memory);
  REQUIRE(kind_of_kernel("void at::native::vectorized_elementwise_kernel<4>") ==
          KernelKind::Memory);
  REQUIRE(kind_of_kernel("void cublasLt::splitKreduce_kernel<32, 16>") == KernelKind::Memory);
}

TEST_CASE("each kernel takes as much longer as the rates of its kind are lower", "[swapped]") {
  ComputeRates from;
  from.gemm_rate = 600e12;
  from.attention_forward = 500e12;
  from.memory_rate = 3e12;
  ComputeRates to = from;
  to.gemm_rate = 200e12;
  to.attention_forward = 250e12;
  to.memory_rate = 4e12;
  OperationGraph graph(1);
  const StreamId stream = graph.add_stream(0, "stream 7");
  for (const char* name : {"gemm", "flash_fwd", "Memcpy HtoD", "elementwise"}) {
    graph.add_compute(stream, name, StepPart::Linear, microseconds(1));
  }
  graph.add_host(stream, "gemm", StepPart::Host, microseconds(1));
  REQUIRE(swapped_ppm(graph, swap_factors(from, to)) ==
          std::vector<std::int64_t>{3'000'000, 2'000'000, 1'000'000, 750'000, 1'000'000});
  REQUIRE(swapped_ppm(graph, swap_factors(from, to), {2'000'000, 1, 1, 2'000'000, 5}) ==
          std::vector<std::int64_t>{6'000'000, 2, 1, 1'500'000, 5});
  REQUIRE(swapped_ppm(graph, swap_factors(from, from)) == std::vector<std::int64_t>(5, 1'000'000));
}

}  // namespace trainyard
