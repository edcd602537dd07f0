// SPDX-License-Identifier: Apache-2.0
#include "calibrate/cuda/nccl_measurement.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>

#include "calibrate/backend.h"
#include "calibrate/cuda/device.h"
#include "calibrate/cuda/nccl_environment.h"
#include "calibrate/cuda/nccl_operations.h"
#include "calibrate/cuda/nccl_ranks.h"
#include "calibrate/cuda/nvml.h"
#include "calibrate/rendezvous.h"

namespace trainyard::calibrate {
namespace {

// Eight bytes to 128 MiB, as nccl-tests counts the size of each operation.
constexpr std::size_t kMinBytes = 8;
constexpr std::size_t kMaxBytes = std::size_t{128} << 20;

int gpu_count() {
  int count = 0;
  require(cudaGetDeviceCount(&count), "cudaGetDeviceCount");
  return count;
}

// A launcher tells each process which of its node it is.
int device_of(const NcclSetting& setting, const Options& options) {
  if (shares_a_gpu(setting.mode)) {
    return 0;
  }
  int local = options.rank;
  if (setting.mode == NcclMode::Network) {
    for (const char* const name :
         {"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID"}) {
      if (const char* const value = std::getenv(name); value != nullptr) {
        local = std::atoi(value);
        break;
      }
    }
  }
  // A scheduler may show each process its own GPU alone.
  return local % gpu_count();
}

// Numbers that rank 0 decides and all need, such as how often an operation is called.
class Agreement {
 public:
  explicit Agreement(const Options& options) : options_(options), folder_(options.rendezvous) {}

  std::int64_t on(std::int64_t value) {
    if (options_.ranks == 1) {
      return value;
    }
    const std::string name = fmt::format("{}.agree.{}", options_.token, next_++);
    if (options_.rank == 0) {
      folder_.publish(name, std::to_string(value));
      return value;
    }
    const auto answer = folder_.await(name, std::chrono::minutes(5));
    if (!answer) {
      throw std::runtime_error("rank 0 is gone");
    }
    return std::strtoll(answer->c_str(), nullptr, 10);
  }

  ncclUniqueId identifier(const Nccl& nccl) const {
    ncclUniqueId id{};
    const std::string name = options_.token + ".nccl";
    if (options_.rank == 0) {
      nccl.require(nccl.ncclGetUniqueId(&id), "ncclGetUniqueId");
      folder_.publish(name, std::string(id.internal, sizeof(id.internal)));
      return id;
    }
    const auto answer = folder_.await(name, std::chrono::minutes(2));
    if (!answer || answer->size() != sizeof(id.internal)) {
      throw std::runtime_error("rank 0 has not published an identifier");
    }
    std::memcpy(id.internal, answer->data(), sizeof(id.internal));
    return id;
  }

 private:
  const Options& options_;
  Rendezvous folder_;
  int next_ = 0;
};

// Makes the communicator; the ranks of this process.
std::vector<std::unique_ptr<LocalRank>> connect(const Nccl& nccl, const NcclSetting& setting,
                                                const Options& options,
                                                const Agreement& agreement) {
  std::vector<std::unique_ptr<LocalRank>> ranks;
  if (setting.mode == NcclMode::OneProcess) {
    const int count = gpu_count();
    std::vector<ncclComm_t> communicators(static_cast<std::size_t>(count));
    nccl.require(nccl.ncclCommInitAll(communicators.data(), count, nullptr), "ncclCommInitAll");
    for (int i = 0; i < count; ++i) {
      ranks.push_back(std::make_unique<LocalRank>(i, i, count, kMaxBytes));
      ranks.back()->communicator = communicators[static_cast<std::size_t>(i)];
    }
    return ranks;
  }
  ranks.push_back(std::make_unique<LocalRank>(device_of(setting, options), options.rank,
                                              options.ranks, kMaxBytes));
  const ncclUniqueId id = agreement.identifier(nccl);
  nccl.require(nccl.ncclCommInitRank(&ranks[0]->communicator, options.ranks, id, options.rank),
               "ncclCommInitRank");
  return ranks;
}

std::vector<Operation> operations_of(const NcclSetting& setting) {
  if (setting.algorithm == "Tree" || setting.algorithm == "NVLSTree") {
    return {Operation::AllReduce};
  }
  if (setting.algorithm == "NVLS") {
    return {Operation::AllReduce, Operation::AllGather, Operation::ReduceScatter};
  }
  std::vector<Operation> all = {Operation::AllReduce, Operation::AllGather,
                                Operation::ReduceScatter, Operation::Broadcast, Operation::Reduce};
  if (setting.algorithm.empty()) {
    all.push_back(Operation::AllToAll);
    all.push_back(Operation::SendReceive);
  }
  return all;
}

class Sweep {
 public:
  Sweep(const Nccl& nccl, const NcclSetting& setting, const Options& options, SampleSink& sink)
      : nccl_(nccl), setting_(setting), options_(options), sink_(sink), agreement_(options) {}

  void run() {
    const WallClock clock;
    ranks_ = connect(nccl_, setting_, options_, agreement_);
    add_times(sink_, "communicator set-up", parameters("", 0), {clock.seconds()});
    for (const Operation operation : operations_of(setting_)) {
      for (std::size_t bytes = kMinBytes; bytes <= kMaxBytes; bytes *= 4) {
        if (!fits(operation, bytes, ranks_[0]->ranks)) {
          continue;
        }
        if (setting_.log) {
          call(operation, bytes, 1);
        } else if (!measure(operation, bytes)) {
          break;
        }
      }
      check(operation);
    }
    for (const auto& rank : ranks_) {
      (void)nccl_.ncclCommDestroy(rank->communicator);
    }
  }

 private:
  [[nodiscard]] std::vector<Parameter> parameters(const char* operation, std::size_t bytes) const {
    std::vector<Parameter> all = {
        text("mode", std::string(mode_text(setting_.mode))),
        integer("ranks", ranks_.empty() ? options_.ranks : ranks_[0]->ranks),
        text("algorithm", setting_.algorithm.empty() ? "default" : setting_.algorithm),
        text("protocol", setting_.protocol.empty() ? "default" : setting_.protocol),
        integer("forced_channels", setting_.channels)};
    if (shares_a_gpu(setting_.mode)) {
      all.push_back(text("sharing", sharing_of_the_gpu()));
    }
    if (bytes > 0) {
      all.push_back(text("operation", operation));
      all.push_back(integer("bytes", static_cast<std::int64_t>(bytes)));
    }
    return all;
  }

  // `count` calls, and the end of all.
  void call(Operation operation, std::size_t bytes, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) {
      if (ranks_.size() > 1) {
        nccl_.require(nccl_.ncclGroupStart(), "ncclGroupStart");
      }
      for (const auto& rank : ranks_) {
        require(cudaSetDevice(rank->device), "cudaSetDevice");
        start(nccl_, operation, *rank, bytes);
      }
      if (ranks_.size() > 1) {
        nccl_.require(nccl_.ncclGroupEnd(), "ncclGroupEnd");
      }
    }
    for (const auto& rank : ranks_) {
      require(cudaSetDevice(rank->device), "cudaSetDevice");
      rank->stream.wait();
    }
  }

  double seconds_of(Operation operation, std::size_t bytes, std::int64_t count) {
    const WallClock clock;
    call(operation, bytes, count);
    return clock.seconds() / static_cast<double>(count);
  }

  // False where larger sizes would take too long.
  bool measure(Operation operation, std::size_t bytes) {
    constexpr double kBatch = 1e-3;
    constexpr double kMax = 20e-3;
    first_call(operation, bytes);
    double shortest = 1e9;
    for (int i = 0; i < options_.warmup; ++i) {
      shortest = std::min(shortest, seconds_of(operation, bytes, 1));
    }
    const std::int64_t batch = agreement_.on(
        std::clamp<std::int64_t>(static_cast<std::int64_t>(kBatch / shortest), 1, 50));
    std::vector<double> seconds;
    for (int i = 0; i < options_.repetitions; ++i) {
      seconds.push_back(seconds_of(operation, bytes, batch));
    }
    const auto all = parameters(name_of(operation), bytes);
    add_times(sink_, "collective time", all, seconds);
    add_bandwidth(sink_, "collective bus bandwidth", all,
                  bus_bytes(operation, bytes, ranks_[0]->ranks), seconds);
    return agreement_.on(shortest < kMax ? 1 : 0) != 0;
  }

  // Where an algorithm was asked for, NCCL may refuse; that is no failure of the machine.
  void first_call(Operation operation, std::size_t bytes) {
    try {
      call(operation, bytes, 1);
    } catch (const std::runtime_error& error) {
      if (setting_.algorithm.empty()) {
        throw;
      }
      throw NotMeasured(fmt::format("NCCL refuses {} {}: {}", setting_.algorithm, setting_.protocol,
                                    error.what()));
    }
  }

  void check(Operation operation) {
    constexpr std::size_t kBytes = std::size_t{1} << 20;
    for (const auto& rank : ranks_) {
      prepare(*rank, kBytes);
    }
    call(operation, kBytes, 1);
    for (const auto& rank : ranks_) {
      check_result(operation, *rank, kBytes);
    }
  }

  const Nccl& nccl_;
  const NcclSetting& setting_;
  const Options& options_;
  SampleSink& sink_;
  Agreement agreement_;
  std::vector<std::unique_ptr<LocalRank>> ranks_;
};

void add_file(SampleSink& sink, const char* name, const std::filesystem::path& file) {
  constexpr std::size_t kMax = std::size_t{256} << 10;
  std::ifstream stream(file, std::ios::binary);
  std::string content(std::istreambuf_iterator<char>(stream), {});
  if (content.empty()) {
    return;
  }
  if (content.size() > kMax) {
    content.resize(kMax);
    content += "\n(cut)";
  }
  sink.add(Record{.name = name, .text = std::move(content)});
}

// One rank, or all of them in the mode of one process.
void run_rank(const NcclSetting& setting, const Options& options, SampleSink& sink) {
  set_environment(setting, options);
  const std::filesystem::path folder(options.rendezvous);
  if (options.rank == 0) {
    sink.add(Record{.name = "NCCL's environment", .text = nccl_environment()});
  }
  const Nccl nccl(options);
  std::array<char, 32> bus{};
  require(
      cudaDeviceGetPCIBusId(bus.data(), static_cast<int>(bus.size()), device_of(setting, options)),
      "cudaDeviceGetPCIBusId");
  StateWatch watch(bus.data());  // Of rank 0's GPU; the others' samples are nobody's.
  Sweep(nccl, setting, options, sink).run();
  watch.finish(sink);
  if (setting.log && options.rank == 0) {
    (void)std::fflush(nullptr);  // NCCL's log is a stream of the C library.
    add_file(sink, "NCCL log", folder / log_file(options));
    add_file(sink, "NCCL topology", folder / topology_file(options));
    add_file(sink, "NCCL graphs", folder / graph_file(options));
  }
}

void run_ranks_of_node(const std::string& id, const NcclSetting& setting, const Options& options) {
  const int ranks = shares_a_gpu(setting.mode) ? 2 : gpu_count();
  if (!shares_a_gpu(setting.mode)) {
    const MeetingFolder folder;
    run_ranks(options, id, ranks, folder.path());
    return;
  }
  bool again = false;
  {
    const MeetingFolder folder;
    const MeetingFolder service_folder;
    const MultiProcessService service(service_folder.path());
    set_sharing_of_the_gpu(service.runs());
    try {
      run_ranks(options, id, ranks, folder.path());
    } catch (const std::runtime_error&) {
      if (!service.is_ours()) {
        throw;
      }
      again = true;
    }
  }
  if (again) {  // The service starts in places where no process can use it.
    const MeetingFolder folder;
    set_sharing_of_the_gpu(false);
    run_ranks(options, id, ranks, folder.path());
  }
}

}  // namespace

void measure_nccl(const std::string& id, const NcclSetting& setting, const Options& options,
                  SampleSink& sink) {
  const bool starts_ranks = setting.mode != NcclMode::OneProcess &&
                            setting.mode != NcclMode::Network && options.ranks == 1;
  if (starts_ranks) {
    run_ranks_of_node(id, setting, options);
  } else {
    run_rank(setting, options, sink);
  }
}

}  // namespace trainyard::calibrate
