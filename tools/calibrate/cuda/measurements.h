// SPDX-License-Identifier: Apache-2.0
// The measurements of one node without NCCL, each in the file of its name. docs/accuracy/harness.md
// says what each one does, sample by sample. All throw std::runtime_error.
#pragma once

#include "calibrate/cuda/device.h"

namespace trainyard::calibrate {

void measure_memory(Context& context);
void measure_launch(Context& context);
void measure_graph(Context& context);
void measure_host_link(Context& context);
void measure_host_flag(Context& context);
void measure_elementwise(Context& context);
void measure_attention(Context& context);
void measure_gemm(Context& context);  // The last part of the identifier is the data type.
void measure_contention(Context& context);
void measure_fifo_simple(Context& context);
void measure_fifo_ll(Context& context);
void measure_fifo_ll128(Context& context);
void measure_peer_copies(Context& context);
void measure_peer_kernels(Context& context);
void measure_peer_latency(Context& context);
void measure_peer_contention(Context& context);

}  // namespace trainyard::calibrate
