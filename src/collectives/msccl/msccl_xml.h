// SPDX-License-Identifier: Apache-2.0
// MSCCL's algorithm files, as msccl-tools writes them and the MSCCL runtime and RCCL read them: for
// every GPU thread blocks, for every thread block steps.
//
// The structs are the elements of the file; nothing is interpreted here but names. Meanings are
// from microsoft/msccl-tools (msccl/language/ir.py, ir_to_xml) and microsoft/msccl
// (src/graph/topo.cc, src/include/msccl.h). msccl_schedule.h turns them into a schedule.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "collectives/schedule/operation.h"
#include "sim/xml_file.h"

namespace trainyard {

enum class MscclStepType : std::uint8_t {
  Send,                   // s
  Receive,                // r
  ReceiveCopySend,        // rcs
  ReceiveReduceSend,      // rrs: the sum is sent and not kept.
  ReceiveReduceCopy,      // rrc
  ReceiveReduceCopySend,  // rrcs
  Copy,                   // cpy
  Reduce,                 // re, ra: within the GPU.
  Nothing,                // nop: only what it waits for.
};

enum class MscclBuffer : std::uint8_t { Input, Output, Scratch };

struct MscclStep {
  FilePlace place;
  MscclStepType type = MscclStepType::Nothing;
  MscclBuffer source_buffer = MscclBuffer::Input;
  int source_offset = 0;  // In chunks.
  MscclBuffer target_buffer = MscclBuffer::Input;
  int target_offset = 0;
  int count = 0;
  // Waits until this thread block of the GPU has done this step; -1: for none.
  int depends_on_block = -1;
  int depends_on_step = -1;
  bool is_depended_on = false;
};

struct MscclBlock {
  FilePlace place;
  int send_peer = -1;  // -1: none.
  int receive_peer = -1;
  int channel = 0;
  std::vector<MscclStep> steps;  // Step s of the file is steps[s].
};

struct MscclGpu {
  FilePlace place;
  int input_chunks = 0;
  int output_chunks = 0;
  int scratch_chunks = 0;
  std::vector<MscclBlock> blocks;  // Ordered by id.
};

struct MscclAlgorithm {
  FilePlace place;
  std::string name;
  std::string protocol;
  Operation operation = Operation::AllReduce;
  bool is_custom = false;  // The file does not say which operation it is.
  bool in_place = false;
  int channels = 1;
  int chunks = 1;  // `nchunksperloop`: into how many the size is cut.
  int root = 0;
  std::int64_t min_bytes = 0;  // Sizes for which the runtime would take it.
  std::int64_t max_bytes = 0;  // 0: any.
  std::vector<MscclGpu> gpus;  // By id.
};

// `name` represents the file in errors. Throws ConfigError "NAME:LINE:COLUMN: ELEMENT: ..." for
// text that is no XML, an unknown element, attribute, collective or step, a missing or impossible
// number, ids that are not 0, 1, 2, ... in their order, or more than MSCCL runs: 256 steps of a
// block, 32 channels, 72 chunks of a step.
[[nodiscard]] MscclAlgorithm read_msccl_xml(std::string_view text, const std::string& name);

}  // namespace trainyard
