// SPDX-License-Identifier: Apache-2.0
// Plans of MSCCL++, written here in the shape of those of its language.
#pragma once

#include <functional>
#include <string>

#include <spdlog/fmt/fmt.h>

namespace trainyard {

// The list of what `item` says of 0 to count - 1; nothing leaves one out.
inline std::string plan_list(int count, const std::function<std::string(int)>& item) {
  std::string list;
  for (int index = 0; index < count; ++index) {
    const std::string text = item(index);
    list += (list.empty() || text.empty() ? "" : ",") + text;
  }
  return "[" + list + "]";
}

inline std::string plan_buffer(const std::string& what, int index, int size) {
  return fmt::format(R"({{{},"index":{},"size":{}}})", what, index, size);
}

// Each thread block has a channel to every other GPU, and the same buffer of all of them.
struct PlanShape {
  std::string collective;
  int gpus = 2;
  int input_chunks = 1;
  int output_chunks = 1;
  int scratch_chunks = 0;
  std::string remote = "i";  // Which buffer of the others is reached.
  int blocks = 1;
};
// `ops` are those of a GPU and thread block.
inline std::string plan_of(const PlanShape& shape,
                           const std::function<std::string(int, int)>& ops) {
  const int peers = shape.gpus - 1;
  const auto gpu = [&](int rank) {
    const auto peer = [&](int index) { return index < rank ? index : index + 1; };
    const std::string ends = plan_list(
        peers * shape.blocks, [&](int index) { return std::to_string(peer(index % peers)); });
    const std::string buffers = plan_list(peers, [&](int index) {
      return fmt::format(R"({{"rank":{},"type":"{}","access_channel_types":["memory"]}})",
                         peer(index), shape.remote);
    });
    const std::string blocks = plan_list(shape.blocks, [&](int block) {
      const std::string channels =
          plan_list(peers, [&](int index) { return std::to_string(block * peers + index); });
      const std::string remotes = plan_list(peers, [](int index) { return std::to_string(index); });
      return fmt::format(
          R"({{"id":{},"ops":[{}],"channels":[{{"channel_type":"memory","channel_ids":{}}}],)"
          R"("remote_buffer_refs":[{{"access_channel_type":"memory","remote_buffer_ids":{}}}]}})",
          block, ops(rank, block), channels, remotes);
    });
    return fmt::format(
        R"({{"id":{},"input_chunks":{},"output_chunks":{},"scratch_chunks":{},"threadblocks":{},)"
        R"("channels":[{{"channel_type":"memory","connected_to":{}}}],"remote_buffers":{},)"
        R"("semaphores":[{{"init_value":0}}]}})",
        rank, shape.input_chunks, shape.output_chunks, shape.scratch_chunks, blocks, ends, buffers);
  };
  return fmt::format(
      R"({{"name":"plan","collective":"{}","protocol":"Simple","inplace":true,"gpus":{}}})",
      shape.collective, plan_list(shape.gpus, gpu));
}

// "signal" and "wait" on the channels to all others.
inline std::string plan_on_channels(const std::string& name, int gpus) {
  return fmt::format(R"({{"name":"{}","channel_type":"memory","channel_ids":{}}})", name,
                     plan_list(gpus - 1, [](int index) { return std::to_string(index); }));
}

// Each GPU puts its chunk into all others, signals and waits.
inline std::string put_all_gather(int gpus) {
  return plan_of({.collective = "allgather", .gpus = gpus, .output_chunks = gpus, .remote = "o"},
                 [&](int rank, int) {
                   const auto own = [&](int) { return plan_buffer(R"("type":"o")", rank, 1); };
                   const auto there = [&](int index) {
                     return plan_buffer(fmt::format(R"("buffer_id":{})", index), rank, 1);
                   };
                   return fmt::format(
                       R"({{"name":"put","src_buff":{},"dst_buff":{},"channel_type":"memory"}},)"
                       R"({},{{"name":"nop"}},{})",
                       plan_list(gpus - 1, own), plan_list(gpus - 1, there),
                       plan_on_channels("signal", gpus), plan_on_channels("wait", gpus));
                 });
}

// Each GPU reads its chunk of all others, adds it up and writes the sum to them. With `shares`,
// so many thread blocks do it together; else one does.
inline std::string read_all_reduce(int gpus, int shares = 1) {
  return plan_of(
      {.collective = "allreduce",
       .gpus = gpus,
       .input_chunks = gpus,
       .output_chunks = gpus,
       .blocks = shares},
      [&](int rank, int block) {
        const std::string buffers =
            plan_buffer(R"("type":"i")", rank, 1) + "," +
            plan_list(gpus - 1, [&](int index) {
              return plan_buffer(fmt::format(R"("buffer_id":{})", index), rank, 1);
            }).substr(1);
        const std::string group =
            shares > 1 ? fmt::format(R"(,"tbg_info":{{"tb_id":{},"tbg_size":{}}})", block, shares)
                       : "";
        return fmt::format(
            R"({},{},{{"name":"rres","src_buff":[{},"dst_buff":[{},"channel_type":"memory",)"
            R"("reduce_op":"sum"{}}},{},{})",
            plan_on_channels("rlxsignal", gpus), plan_on_channels("rlxwait", gpus), buffers,
            buffers, group, plan_on_channels("signal", gpus), plan_on_channels("wait", gpus));
      });
}

// Each GPU sends packets to the scratch of all others, which add them up and send packets of the
// sum back, to be unpacked.
inline std::string packet_all_reduce(int gpus) {
  return plan_of(
      {.collective = "allreduce",
       .gpus = gpus,
       .input_chunks = gpus,
       .output_chunks = gpus,
       .scratch_chunks = 2 * gpus,
       .remote = "s"},
      [&](int rank, int) {
        const auto peer = [&](int index) { return index < rank ? index : index + 1; };
        const auto here = [&](const char* type, int index) {
          return plan_buffer(fmt::format(R"("type":"{}")", type), index, 1);
        };
        const auto there = [&](int index, int chunk) {
          return plan_buffer(fmt::format(R"("buffer_id":{})", index), chunk, 1);
        };
        const std::string sources =
            plan_list(gpus, [&](int index) { return index == rank ? "" : here("s", index); });
        const std::string sums =
            plan_list(gpus - 1, [&](int index) { return there(index, gpus + rank); });
        const std::string unpacked = plan_list(gpus - 1, [&](int index) {
          return fmt::format(R"({{"name":"upkt","src_buff":[{}],"dst_buff":[{}]}})",
                             here("s", gpus + peer(index)), here("i", peer(index)));
        });
        return fmt::format(
            R"({{"name":"ppkt","src_buff":{},"dst_buff":{},"channel_type":"memory"}},)"
            R"({{"name":"respkt","src_buff":[{},{},"dst_buff":[{},{},"channel_type":"memory"}},{})",
            plan_list(gpus - 1, [&](int index) { return here("i", peer(index)); }),
            plan_list(gpus - 1, [&](int index) { return there(index, rank); }), here("i", rank),
            sources.substr(1), here("i", rank), sums.substr(1),
            unpacked.substr(1, unpacked.size() - 2));
      });
}

}  // namespace trainyard
