// SPDX-License-Identifier: Apache-2.0
// Times of small profiles are computed by hand for a network on which a message takes 1 us and
// 1 ns for each byte: a sum of 2000 bytes over a ring of two takes two rounds of 2 us.
#include "support/catch.h"

#include "parallelism/trace_import/kineto_trace.h"

#include <spdlog/fmt/fmt.h>

#include <string>
#include <vector>

#include "support/effort.h"
#include "support/golden_errors.h"
#include "support/imported_workloads.h"

namespace trainyard {
namespace {

using namespace literals;

// Times in microseconds.
std::string work(int stream, double start, double time) {
  return fmt::format(R"({{"ph": "X", "cat": "kernel", "name": "gemm", "ts": {}, "dur": {}, )"
                     R"("args": {{"stream": {}}}}})",
                     start, time, stream);
}

std::string sum(int stream, double start, double time, int elements = 500,
                const std::string& ranks = "[0, 1]") {
  return fmt::format(
      R"({{"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce", "ts": {}, "dur": {}, )"
      R"("args": {{"stream": {}, "Collective name": "allreduce", "In msg nelems": {}, )"
      R"("Out msg nelems": {}, "Group size": 2, "dtype": "Float", "Process Group Name": "0", )"
      R"("Process Group Ranks": "{}"}}}})",
      start, time, stream, elements, elements, ranks);
}

std::string profile(int rank, const std::vector<std::string>& events, int world = 2) {
  return fmt::format(
      R"({{"distributedInfo": {{"rank": {}, "world_size": {}}}, "traceEvents": [{}]}})", rank,
      world, fmt::join(events, ",\n"));
}

ImportedWorkload kineto(const std::vector<std::string>& texts) {
  return imported_workload(ImportedFormat::Kineto, imported_files(texts));
}

std::string kineto_error(const std::vector<std::string>& texts) {
  return imported_error(ImportedFormat::Kineto, imported_files(texts));
}

// Both streams at work, a collective that is hidden, and a gap before the last operation.
std::vector<std::string> overlapped(double offset) {
  return {work(7, offset, 10), sum(20, offset + 10, 5), work(7, offset + 10, 8),
          work(7, offset + 20, 3)};
}

// Older versions of PyTorch write this of a sum: a kernel without a name for its collective, its
// launch, and around that what was noted down, in microseconds.
std::vector<std::string> launched(double start, double time, const std::string& title, int elements,
                                  const std::string& dispatched = "[[]]", int correlation = 5) {
  const auto host = [&](const std::string& category, const std::string& name, double at,
                        const std::string& arguments) {
    return fmt::format(R"({{"ph": "X", "cat": "{}", "name": "{}", "pid": 1, "tid": 2, "ts": {}, )"
                       R"("dur": 4, "args": {{{}}}}})",
                       category, name, at, arguments);
  };
  return {host("cpu_op", "c10d::" + title, start - 9,
               fmt::format(R"("Input Dims": {}, "Input type": ["float", "float"])", dispatched)),
          host("user_annotation", "nccl:" + title, start - 8,
               fmt::format(R"("Input Dims": [[{}]], "Input type": ["float"])", elements)),
          host("cuda_runtime", "cudaLaunchKernel", start - 7,
               fmt::format(R"("correlation": {})", correlation)),
          fmt::format(R"({{"ph": "X", "cat": "kernel", "name": "ncclKernel_AllReduce_RING_LL", )"
                      R"("ts": {}, "dur": {}, "args": {{"stream": 20, "correlation": {}}}}})",
                      start, time, correlation)};
}

}  // namespace

TEST_CASE("a rank without calls takes what was recorded", "[kineto]") {
  // Three streams, with gaps and operations at once.
  const ImportedWorkload workload =
      kineto({profile(0,
                      {work(1, 1000, 5), work(2, 1002.5, 10), work(3, 1004, 1), work(1, 1005, 2.25),
                       work(1, 1012.5, 4), work(3, 1013, 0.125)},
                      1)});
  const GraphedRun run = run_round(workload);
  REQUIRE(run.result.finish == 16'500_ns);
  REQUIRE(workload.notes == std::vector<std::string>{
                                "recorded were 16.500 us from the first to the last operation of "
                                "the GPU of a rank"});
}

TEST_CASE("calls take what they take on the network, beside other streams", "[kineto]") {
  // The call runs from 10 to 14 us; work on the other stream from 10 to 18 us. The last operation
  // waits 2 us for its launch, as recorded.
  const ImportedWorkload workload =
      kineto({profile(0, overlapped(100)), profile(1, overlapped(500))});
  for (const bool shares_network : {false, true}) {
    const GraphedRun run = run_round(workload, {}, shares_network);
    REQUIRE(run.result.finish == 23_us);
    REQUIRE(run.ranks[0][StepPart::Linear] == 21_us);
    REQUIRE(run.ranks[0][StepPart::Data] + run.ranks[0][StepPart::Host] == 2_us);
  }
  // With 20 times the bytes the call takes two rounds of 21 us, and the last operation waits.
  std::vector<std::string> events = overlapped(0);
  events[1] = sum(20, 10, 5, 10'000);
  const ImportedWorkload longer = kineto({profile(0, events), profile(1, events)});
  REQUIRE(run_round(longer).result.finish == 10_us + 42_us + 3_us);
}

TEST_CASE("a kernel without a name is the call around its launch", "[kineto]") {
  const auto with = [](const std::vector<std::string>& call) {
    std::vector<std::string> events = overlapped(100);
    events.erase(events.begin() + 1);
    events.insert(events.end(), call.begin(), call.end());
    return events;
  };
  // The same as in the test above, where the kernels have names.
  const std::vector<std::string> events = with(launched(110, 5, "all_reduce", 500));
  const ImportedWorkload workload = kineto({profile(0, events), profile(1, events)});
  REQUIRE(workload.recorded_calls.size() == 2);
  REQUIRE(run_round(workload).result.finish == 23_us);
  REQUIRE(workload.notes.front() ==
          "2 kernels of collectives without a name are taken as the calls around their launches, "
          "of all 2 ranks");
  // A rank gathers what both put in: 2000 bytes each.
  const std::vector<std::string> gather = with(launched(110, 5, "_all_gather_base", 500));
  const ImportedWorkload gathered = kineto({profile(0, gather), profile(1, gather)});
  const GraphCall& call = gathered.graph.operation(gathered.recorded_calls.at(0).operation).call;
  REQUIRE(call.operation == Operation::AllGather);
  REQUIRE(call.size == Bytes(4000));
}

TEST_CASE("a launch names no call that ranks disagree about, or of another group", "[kineto]") {
  const auto notes_of = [](const std::vector<std::string>& first,
                           const std::vector<std::string>& second) {
    const ImportedWorkload workload = kineto({profile(0, first), profile(1, second)});
    REQUIRE(workload.recorded_calls.empty());
    return workload.notes.front();
  };
  const std::vector<std::string> sum_of_two = launched(110, 5, "all_reduce", 500);
  REQUIRE(notes_of(sum_of_two, launched(110, 5, "all_reduce", 501)) ==
          "2 kernels of collectives whose collective has no name take their recorded time, 10.000 "
          "us in all");
  // Four ranks share what comes out, and the profile has two.
  const std::vector<std::string> of_four =
      launched(110, 5, "_reduce_scatter_base", 500, "[[125], [500]]");
  REQUIRE(notes_of(of_four, of_four) ==
          "2 kernels of collectives of groups whose ranks are nowhere in the file take their "
          "recorded time, 10.000 us in all");
  const std::vector<std::string> unequal = launched(110, 5, "all_to_all", 500, "[[501], [500]]");
  REQUIRE(notes_of(unequal, unequal).find("2 kernels of collectives with unequal splits") == 0);
  // Two kernels in one call.
  std::vector<std::string> twice = sum_of_two;
  twice.push_back(launched(120, 5, "all_reduce", 500).back());
  REQUIRE(notes_of(twice, twice).find("4 kernels of collectives whose collective has no name") ==
          0);
}

TEST_CASE("one rank represents those that have no trace", "[kineto]") {
  const ImportedWorkload workload = kineto({profile(1, overlapped(0))});
  REQUIRE(workload.graph.ranks() == 2);
  REQUIRE(workload.graph.present()[0] == 1);
  REQUIRE(run_round(workload, {}, false).result.finish == 23_us);
  REQUIRE(workload.notes.front() ==
          "1 of 2 ranks have a trace: the others are taken to come to every call in time");
}

TEST_CASE("operations of one stream that overlap run beside each other", "[kineto]") {
  const ImportedWorkload workload =
      kineto({profile(0, {work(7, 0, 10), work(7, 9.5, 2), work(7, 5, 4)}, 1)});
  REQUIRE(run_round(workload).result.finish == 11'500_ns);
  REQUIRE(workload.notes.front().find("1 operations began before the one before them") == 0);
}

TEST_CASE("operations that begin while the one before them drains take what was recorded",
          "[kineto]") {
  // Each begins 0.5 us before the one before it ends, and one of another stream waits for the
  // second. With twice the computation they still come one after the other: 9.5, 9.5 and 10 us, and
  // as long again.
  const ImportedWorkload workload =
      kineto({profile(0, {work(7, 0, 10), work(7, 9.5, 10), work(7, 19, 10), work(8, 29, 1)}, 1)});
  REQUIRE(run_round(workload).result.finish == 30_us);
  REQUIRE(workload.notes.size() == 1);
  REQUIRE(run_round(workload, {.compute_ppm = {2'000'000}}).result.finish == 60_us);
}

TEST_CASE("calls that cannot be predicted take what was recorded, and one note", "[kineto]") {
  const std::string unnamed =
      R"({"ph": "X", "cat": "kernel", "name": "ncclKernel_AllReduce_RING_LL_Sum_float", "ts": 14, )"
      R"("dur": 5, "args": {"stream": 20}})";
  const std::vector<std::string> events{work(7, 0, 10), sum(20, 10, 5), unnamed, work(7, 19, 3)};
  const ImportedWorkload workload = kineto({profile(0, events)});
  // The named call takes 4 us of its own, as above, and nothing else differs.
  REQUIRE(run_round(workload, {}, false).result.finish == 22_us);
  REQUIRE(
      workload.notes.front() ==
      "1 kernels of collectives whose collective has no name take their recorded time, 5.000 us "
      "in all");
  REQUIRE(run_round(workload, {.compute_ppm = {2'000'000, 2'000'000}}, false).result.finish ==
          22_us + 13_us);
  const ImportedWorkload cut_off = kineto({profile(0, {sum(20, 0, 5, 500, "[0, ...")}, 4)});
  REQUIRE(run_round(cut_off, {}, false).result.finish == 5_us);
  REQUIRE(cut_off.notes.front().find("1 kernels of collectives of groups whose ranks are") == 0);
}

TEST_CASE("the rank of a profile is what it states, or the pattern of its name has", "[kineto]") {
  const std::string unranked = R"({"traceEvents": [)" + work(7, 0, 1) + "]}";
  std::vector<ImportedFile> files = imported_files({unranked, unranked});
  REQUIRE(imported_workload(ImportedFormat::Kineto, files).graph.ranks() == 2);
  files[1].rank = std::nullopt;
  REQUIRE(
      imported_error(ImportedFormat::Kineto, files) ==
      "1.file: distributedInfo: expected the rank, as there are several files (or their names as "
      "a pattern with {rank}), found none");
  files.erase(files.begin());
  REQUIRE(imported_workload(ImportedFormat::Kineto, files).graph.ranks() == 1);
}

TEST_CASE("messages of profiles meet as in NCCL", "[kineto]") {
  const auto message = [](bool sends, int peer, double start) {
    return fmt::format(
        R"({{"ph": "X", "cat": "kernel", "name": "ncclDevKernel_SendRecv", "ts": {}, "dur": 9, )"
        R"("args": {{"stream": 30, "Collective name": "{}", "In msg nelems": 1000, )"
        R"("Out msg nelems": 1000, "Group size": 2, "dtype": "Byte", "{} Rank": {}, )"
        R"("Process Group Name": "1", "Process Group Ranks": "[0, 1]"}}}})",
        start, sends ? "send" : "recv", sends ? "Dst" : "Src", peer);
  };
  const ImportedWorkload workload = kineto({profile(0, {work(7, 0, 4), message(true, 1, 4)}),
                                            profile(1, {message(false, 0, 0), work(7, 9, 1)})});
  REQUIRE(run_round(workload).result.finish == 4_us + 2_us + 1_us);
  REQUIRE(kineto_error({profile(0, {message(true, 1, 4)}), profile(1, {work(7, 9, 1)})}) ==
          "0.file and 1 more: rank 0, stream 30: ncclDevKernel_SendRecv: expected a receive of "
          "rank 1 with "
          "tag 0, number 0, found none");
}

TEST_CASE("ranks whose profiles disagree are named", "[kineto]") {
  const std::string first = profile(0, {sum(20, 0, 5)});
  REQUIRE(kineto_error({first, profile(1, {sum(20, 0, 5, 400)})}) ==
          "0.file and 1 more: communicator process group \"0\": call 0: expected all_reduce of 2KB "
          "as rank "
          "0, stream 20: ncclDevKernel_AllReduce, found all_reduce of 1600B: rank 1, stream 20: "
          "ncclDevKernel_AllReduce");
  REQUIRE(kineto_error({first, profile(1, {work(7, 0, 1)})}) ==
          "0.file and 1 more: communicator process group \"0\": expected call 0 of every rank, as "
          "rank 0, "
          "stream 20: ncclDevKernel_AllReduce, found none of rank 1");
  REQUIRE(kineto_error({first, first}) ==
          "1.file: expected a rank of its own, as 0.file is rank 0, found the same");
  REQUIRE(kineto_error({profile(0, {})}) ==
          "0.file: traceEvents: expected operations of a GPU, found none");
  REQUIRE(kineto_error({profile(0, {sum(20, 0, 5, 500, "[0, 9]")})}) ==
          "0.file: expected at most 8 ranks, the GPUs of the cluster, found 10");
}

TEST_CASE("damaged profiles are read or refused in one line", "[kineto]") {
  const auto refused = refused_damage(
      profile(0, overlapped(0), 2), R"( {}[]":,0123456789)", cases(1000),
      [](const std::string& text, const std::string&) { return kineto_error({text}); });
  REQUIRE(refused > static_cast<int>(cases(1000) / 2));
}

TEST_CASE("the shipped profiles are found by directory and by pattern", "[kineto]") {
  const auto folder = kConfigsFolder / "workloads/imported/kineto-2";
  REQUIRE(recognise_imported(folder) == ImportedFormat::Kineto);
  REQUIRE(recognise_imported(folder / "trace.{rank}.json") == ImportedFormat::Kineto);
  const auto time = [](const std::filesystem::path& path) {
    const ImportedWorkload workload = imported_workload(
        ImportedFormat::Kineto, read_imported_files(path, ImportedFormat::Kineto));
    return run_round(workload).result.finish;
  };
  REQUIRE(read_imported_files(folder, ImportedFormat::Kineto).size() == 2);
  REQUIRE(time(folder) > SimTime());
  REQUIRE(time(folder) == time(folder / "trace.{rank}.json"));
}

}  // namespace trainyard
