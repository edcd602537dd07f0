// SPDX-License-Identifier: Apache-2.0
// Execution plans of MSCCL++ in JSON, as its language writes them and its executor runs them: for
// every GPU thread blocks, for every thread block operations on memory, also that of other GPUs.
//
// Names and meanings are from microsoft/mscclpp, src/core/executor/execution_plan.cc and
// src/core/include/execution_kernel.hpp. mscclpp_schedule.h turns a plan into a schedule.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "collectives/msccl/msccl_xml.h"

namespace trainyard {

enum class PlanOperation : std::uint8_t {
  Nothing,  // nop, and flush, which waits for what a put has sent.
  Barrier,
  Put,                // put
  PutSignal,          // pws, pwsf
  PutPackets,         // ppkt
  ReadPutPackets,     // rppkt: of packets that came.
  Get,                // get
  Copy,               // copy
  CopyPackets,        // cpkt
  UnpackPackets,      // upkt
  Signal,             // signal, rlxsignal
  Wait,               // wait, rlxwait
  Reduce,             // re, res, rre, rres: of memory here and elsewhere, to the same.
  ReducePackets,      // repkt, respkt: of packets that came, to memory here and packets elsewhere.
  ReduceCopyPackets,  // recpkt, recspkt: and to packets here.
  Release,            // sem_release
  Acquire,            // sem_acquire
};

struct PlanBuffer {
  int rank = 0;
  MscclBuffer buffer = MscclBuffer::Input;
  int first = 0;  // In chunks.
  int count = 0;
};

// One end of a channel: the so-manieth of its kind between both GPUs.
struct PlanChannel {
  int peer = 0;
  bool is_port = false;  // The proxy and a NIC carry it; else it is memory.
  int number = 0;
};

struct PlanStep {
  std::string place;  // "gpus[0].threadblocks[1].ops[2]"
  PlanOperation operation = PlanOperation::Nothing;
  std::vector<PlanBuffer> sources = {};
  std::vector<PlanBuffer> targets = {};
  std::vector<PlanChannel> channels = {};
  std::vector<int> semaphores = {};
  int barrier = 0;
};

struct MscclppPlan {
  MscclAlgorithm algorithm;  // With GPUs that have sizes of buffers and no thread blocks.
  std::vector<std::vector<std::vector<PlanStep>>> steps;  // Indexed by GPU and thread block.
  std::vector<std::vector<int>> semaphores;               // Their first values, by GPU.
};

// `name` represents the file in errors. Throws ConfigError "NAME: PLACE: ..." for text that is no
// plan, and for what is not modelled, by its name: switch channels (glres, gstore, gstorepkt),
// pipelines. Chunks are cut where several thread blocks share an operation (tbg_info).
[[nodiscard]] MscclppPlan read_mscclpp_plan(std::string_view text, const std::string& name);

}  // namespace trainyard
