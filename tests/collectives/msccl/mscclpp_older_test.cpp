// SPDX-License-Identifier: Apache-2.0
// Plans in the older form do what the same plans in the newer form do, which have tests of their
// own.
#include "support/catch.h"

#include "collectives/msccl/mscclpp_older.h"

#include <functional>
#include <string>
#include <vector>

#include "collectives/msccl/mscclpp_schedule.h"
#include "support/imported.h"
#include "support/mscclpp_plans.h"

namespace trainyard {
namespace {

// Each GPU has one thread block, with a channel from `from` here to `to` of every other GPU.
struct OlderShape {
  std::string collective;
  int gpus = 2;
  int input_chunks = 1;
  int output_chunks = 0;
  int scratch_chunks = 0;
  std::string from = "i";
  std::string to = "i";
  std::string kind = "sm";
  std::string key = "collective";
};

std::string older_plan(const OlderShape& shape, const std::function<std::string(int)>& ops) {
  const std::string ends =
      fmt::format(R"("src":"{}","dst":"{}","ctype":"{}")", shape.from, shape.to, shape.kind);
  const std::string cids =
      plan_list(shape.gpus - 1, [](int index) { return std::to_string(index); });
  return fmt::format(
      R"({{"name":"plan","{}":"{}","protocol":"Simple","inplace":true,"gpus":{}}})", shape.key,
      shape.collective, plan_list(shape.gpus, [&](int rank) {
        const std::string peers = plan_list(shape.gpus - 1, [&](int index) {
          return std::to_string(index < rank ? index : index + 1);
        });
        return fmt::format(
            R"({{"id":{},"inputChunks":{},"outputChunks":{},"scratchChunks":{},"chunkGroups":1,)"
            R"("channels":[{{"srcbuff":"{}","dstbuff":"{}","type":"{}","connectedTo":{}}}],)"
            R"("threadblocks":[{{"id":0,"ops":[{}],"channels":[{{{},"cids":{}}}]}}]}})",
            rank, shape.input_chunks, shape.output_chunks, shape.scratch_chunks, shape.from,
            shape.to, shape.kind, peers, ops(rank), ends, cids);
      }));
}

// "NAME_cids" of all channels, at these places, and the buffers that they join.
std::string on_all(const OlderShape& shape, const std::string& name,
                   const std::function<int(int)>& offset) {
  return fmt::format(
      R"("{0}_buff":{{"src":"{1}","dst":"{2}"}},"{0}_cids":{3},"ctype":"{4}")", name, shape.from,
      shape.to,
      plan_list(
          shape.gpus - 1,
          [&](int index) { return fmt::format(R"({{"id":{},"off":{}}})", index, offset(index)); }),
      shape.kind);
}

std::string older_meeting(const OlderShape& shape) {
  const auto zero = [](int) { return 0; };
  return fmt::format(R"({{"name":"signal",{}}},{{"name":"wait",{}}})", on_all(shape, "o", zero),
                     on_all(shape, "i", zero));
}

std::string older_all_gather(int gpus, const std::string& kind = "sm") {
  const OlderShape shape{.collective = "allgather",
                         .gpus = gpus,
                         .output_chunks = gpus,
                         .from = "o",
                         .to = "o",
                         .kind = kind};
  return older_plan(shape, [&](int rank) {
    return fmt::format(
        R"({{"name":"put","srcs":{},{},"cnt":1}},{})",
        plan_list(gpus - 1, [&](int) { return fmt::format(R"({{"buff":"o","off":{}}})", rank); }),
        on_all(shape, "o", [&](int) { return rank; }), older_meeting(shape));
  });
}

std::string older_read_all_reduce(int gpus) {
  const OlderShape shape{
      .collective = "allreduce", .gpus = gpus, .input_chunks = gpus, .key = "colletive"};
  return older_plan(shape, [&](int rank) {
    const auto own = [&](int) { return rank; };
    return fmt::format(R"({0},{{"name":"rrcs",{1},{2},"src":{3},"srcbuff":"i","srcoff":{3},)"
                       R"("dst":{3},"dstbuff":"i","dstoff":{3},"cnt":1}},{0})",
                       older_meeting(shape), on_all(shape, "i", own), on_all(shape, "o", own),
                       rank);
  });
}

// Puts have a list of sources, or one place for all targets, which the first plans had.
std::string older_packet_all_reduce(int gpus, bool has_lists = true) {
  const OlderShape shape{.collective = "allreduce",
                         .gpus = gpus,
                         .input_chunks = gpus,
                         .scratch_chunks = 2 * gpus,
                         .to = "s"};
  return older_plan(shape, [&](int rank) {
    const auto peer = [&](int index) { return index < rank ? index : index + 1; };
    const auto at = [&](const char* buffer, int offset) {
      return fmt::format(R"({{"buff":"{}","off":{}}})", buffer, offset);
    };
    const std::string sources =
        has_lists
            ? fmt::format(R"("srcs":{})",
                          plan_list(gpus - 1, [&](int index) { return at("i", peer(index)); }))
            : fmt::format(R"("srcbuff":"i","srcoff":{})", peer(0));
    const std::string unpacked = plan_list(gpus - 1, [&](int index) {
      return fmt::format(R"({{"name":"cpkt","srcbuff":"s","srcoff":{},"dstbuff":"i","dstoff":{},)"
                         R"("ctype":"none","cnt":1}})",
                         gpus + peer(index), peer(index));
    });
    return fmt::format(
        R"({{"name":"ppkt",{},{},"cnt":1}},{{"name":"rspkt","srcs":{},{},"srcbuff":"i",)"
        R"("srcoff":{},"dstbuff":"i","dstoff":{},"cnt":1}},{})",
        sources, on_all(shape, "o", [&](int) { return rank; }),
        plan_list(gpus - 1, [&](int index) { return at("s", peer(index)); }),
        on_all(shape, "o", [&](int) { return gpus + rank; }), rank, rank,
        unpacked.substr(1, unpacked.size() - 2));
  });
}

// Lists what each step does, without steps that do nothing.
std::vector<std::string> told(const std::string& text) {
  std::vector<std::string> lines;
  const MscclppPlan plan = read_mscclpp_plan(text, "p.json");
  const auto add = [](std::string& line, const std::vector<PlanBuffer>& buffers) {
    for (const PlanBuffer& each : buffers) {
      line += fmt::format(" {}.{}[{}+{}]", each.rank, static_cast<int>(each.buffer), each.first,
                          each.count);
    }
    line += " ;";
  };
  for (const auto& blocks : plan.steps) {
    for (const std::vector<PlanStep>& steps : blocks) {
      for (const PlanStep& step : steps) {
        if (step.operation == PlanOperation::Nothing) {
          continue;
        }
        std::string& line = lines.emplace_back(fmt::format("{}", static_cast<int>(step.operation)));
        add(line, step.sources);
        add(line, step.targets);
        const bool meets =
            step.operation == PlanOperation::Signal || step.operation == PlanOperation::Wait;
        for (const PlanChannel& channel : meets ? step.channels : std::vector<PlanChannel>()) {
          line += fmt::format(" {}.{}.{}", channel.peer, channel.is_port, channel.number);
        }
      }
    }
  }
  return lines;
}

std::string error_of_older(const std::string& text) {
  return complaint([&] { return mscclpp_schedule(read_mscclpp_plan(text, "p.json"), "p.json"); });
}

}  // namespace

TEST_CASE("plans in the older form are those of the newer one") {
  for (int gpus = 2; gpus <= 8; ++gpus) {
    INFO(gpus);
    REQUIRE(told(older_all_gather(gpus)) == told(put_all_gather(gpus)));
    REQUIRE(told(older_read_all_reduce(gpus)) == told(read_all_reduce(gpus)));
    REQUIRE(told(older_packet_all_reduce(gpus)) == told(packet_all_reduce(gpus)));
    REQUIRE(error_of_older(older_packet_all_reduce(gpus)) == "no error");
  }
  REQUIRE(told(older_packet_all_reduce(2, false)) == told(packet_all_reduce(2)));
}

TEST_CASE("channels of an older plan are numbered through for each pair of GPUs and kind") {
  // Another channel to the same GPU stands before those that are used.
  const std::string text =
      with(older_all_gather(2), R"("channels":[{"srcbuff")",
           R"("channels":[{"srcbuff":"o","dstbuff":"s","type":"sm","connectedTo":[1]},{"srcbuff")");
  const MscclppPlan shifted = read_mscclpp_plan(text, "p.json");
  REQUIRE(shifted.steps[0][0][1].channels[0].number == 1);
  REQUIRE(shifted.steps[0][0][0].targets[0].buffer == MscclBuffer::Output);
  const MscclppPlan port = read_mscclpp_plan(older_all_gather(2, "proxy"), "p.json");
  REQUIRE(port.steps[1][0][1].channels[0].is_port);
  REQUIRE(port.steps[1][0][1].channels[0].peer == 0);
}

TEST_CASE("mistakes in an older plan are one line with the place in the file") {
  const std::string text = older_all_gather(2);
  REQUIRE(error_of_older(with(text, "\"sm\"", "\"wire\"")) ==
          "p.json: gpus[0].channels[0].type: expected one of sm, memory, proxy, port, nvls, none, "
          "found \"wire\"");
  REQUIRE(error_of_older(with(text, R"("cids":[0])", R"("cids":[1])")) ==
          "p.json: gpus[0].threadblocks[0].channels[0].cids[0]: expected one of 1, found 1");
  REQUIRE(error_of_older(with(text, R"("id":0,"off":0)", R"("id":3,"off":0)")) ==
          "p.json: gpus[0].threadblocks[0].ops[0].o_cids[0].id: expected one of 1, found 3");
  REQUIRE(error_of_older(with(text, R"("cnt":1)", R"("count":1)")) ==
          "p.json: gpus[0].threadblocks[0].ops[0]: expected the key cnt, found none");
  REQUIRE(error_of_older(with(text, R"("name":"put")", R"("name":"glres")")) ==
          "p.json: gpus[0].threadblocks[0].ops[0].name: expected an operation that is modelled "
          "(not one of switches, or a pipeline), found \"glres\"");
  REQUIRE(error_of_older(with(text, R"("scratchChunks":0)", R"("scratchChunks":-1)")) ==
          "p.json: gpus[0].scratchChunks: expected a whole number from 0 to 65536, found -1");
}

}  // namespace trainyard
