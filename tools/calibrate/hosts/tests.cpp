// SPDX-License-Identifier: Apache-2.0
// Every test repeats until a number of repeats that falls with the size, and gives the least and
// the median. The least is what counts on a machine with other jobs; the median says how far off
// the rest is.
#include "calibrate/hosts/tests.h"

#include <arpa/inet.h>
#include <mpi.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace trainyard::hosts {
namespace {

constexpr int kTag = 1;

int own_rank() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

int all_ranks() {
  int ranks = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  return ranks;
}

double now_us() {
  return 1e6 * MPI_Wtime();
}

void barrier() {
  MPI_Barrier(MPI_COMM_WORLD);
}

int repeats_of(std::size_t bytes, bool quick) {
  constexpr std::size_t kBudget = std::size_t{256} << 20;
  return quick ? 5 : static_cast<int>(std::clamp<std::size_t>(kBudget / (bytes + 1), 40, 400));
}

// Round trips in one timed repeat: a clock is read to some tens of nanoseconds.
int batch_of(std::size_t bytes) {
  return static_cast<int>(std::clamp<std::size_t>(8192 / (bytes + 1), 1, 10));
}

// Powers of two up to `most`, with what lies between some of them.
std::vector<std::size_t> sizes_up_to(std::size_t most, bool quick) {
  if (quick) {
    return {8, 1024, 16384};
  }
  std::vector<std::size_t> sizes{8, 16, 32, 64, 128, 256, 512, 1024, 1536, 2048, 3072};
  for (std::size_t size = 4096; size <= most; size *= 2) {
    sizes.push_back(size);
    if (size < most && size < 65536) {
      sizes.push_back(size * 3 / 2);
    }
  }
  return sizes;
}

Row row_of(Row row, std::vector<double> times) {
  std::sort(times.begin(), times.end());
  row.least_us = times.front();
  row.median_us = times[times.size() / 2];
  row.repeats = static_cast<int>(times.size());
  return row;
}

// Two buffers of a rank, written once so that their pages are there.
struct Buffers {
  explicit Buffers(std::size_t bytes) : first(floats(bytes), 1.0F), second(floats(bytes), 2.0F) {}
  static std::size_t floats(std::size_t bytes) { return std::max<std::size_t>(1, bytes / 4); }
  std::vector<float> first;
  std::vector<float> second;
};

void send(const void* data, std::size_t bytes, int to) {
  MPI_Send(data, static_cast<int>(bytes), MPI_BYTE, to, kTag, MPI_COMM_WORLD);
}

void receive(void* data, std::size_t bytes, int from) {
  MPI_Recv(data, static_cast<int>(bytes), MPI_BYTE, from, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

// The time of the slowest rank from a barrier on, on rank 0. Each rank reads its own clock alone:
// those of two cores of a virtual machine were 2 us apart.
double slowest_us(double begin) {
  const double own = now_us() - begin;
  double slowest = 0.0;
  MPI_Reduce(&own, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  return slowest;
}

// Half a round trip. With `returned`, ranks receive into the buffer that they send from, which the
// other one has read.
Row ping_pong(std::size_t bytes, bool returned, bool quick) {
  Buffers buffers(bytes);
  float* const target = returned ? buffers.first.data() : buffers.second.data();
  const int batch = batch_of(bytes);
  std::vector<double> times;
  const int rank = own_rank();
  for (int i = 0; i < repeats_of(bytes, quick); ++i) {
    barrier();
    const double begin = now_us();
    for (int j = 0; j < batch; ++j) {
      if (rank == 0) {
        send(buffers.first.data(), bytes, 1);
        receive(target, bytes, 1);
      } else if (rank == 1) {
        receive(target, bytes, 0);
        send(buffers.first.data(), bytes, 0);
      }
    }
    times.push_back((now_us() - begin) / (2.0 * batch));
  }
  return row_of({.test = returned ? "returned" : "ping-pong", .bytes = bytes}, std::move(times));
}

// What a send takes its sender, of 16 in a row.
Row sends(std::size_t bytes, bool quick) {
  constexpr int kSends = 16;
  Buffers buffers(bytes);
  std::vector<double> times;
  const int rank = own_rank();
  for (int i = 0; i < repeats_of(bytes, quick); ++i) {
    barrier();
    const double begin = now_us();
    for (int j = 0; j < kSends; ++j) {
      if (rank == 0) {
        send(buffers.first.data(), bytes, 1);
      } else if (rank == 1) {
        receive(buffers.second.data(), bytes, 0);
      }
    }
    times.push_back((now_us() - begin) / kSends);
  }
  return row_of({.test = "sends", .bytes = bytes}, std::move(times));
}

// Both send and receive at the same time. With `written`, each has written what it sends just
// before, as in a collective that adds up.
Row exchange(std::size_t bytes, bool written, bool quick) {
  Buffers buffers(bytes);
  std::vector<double> times;
  const int rank = own_rank();
  for (int i = 0; i < repeats_of(bytes, quick); ++i) {
    if (written) {
      std::fill(buffers.first.begin(), buffers.first.end(), static_cast<float>(i));
    }
    barrier();
    const double begin = now_us();
    if (rank < 2) {
      MPI_Sendrecv(buffers.first.data(), static_cast<int>(bytes), MPI_BYTE, 1 - rank, kTag,
                   buffers.second.data(), static_cast<int>(bytes), MPI_BYTE, 1 - rank, kTag,
                   MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    times.push_back(slowest_us(begin));
  }
  return row_of({.test = written ? "exchange-written" : "exchange", .bytes = bytes},
                std::move(times));
}

// One message whose sender has just written it.
Row written(std::size_t bytes, bool quick) {
  Buffers buffers(bytes);
  std::vector<double> times;
  const int rank = own_rank();
  for (int i = 0; i < repeats_of(bytes, quick); ++i) {
    if (rank == 0) {
      std::fill(buffers.first.begin(), buffers.first.end(), static_cast<float>(i));
    }
    barrier();
    const double begin = now_us();
    if (rank == 0) {
      send(buffers.first.data(), bytes, 1);
    } else if (rank == 1) {
      receive(buffers.second.data(), bytes, 0);
    }
    times.push_back(slowest_us(begin));
  }
  return row_of({.test = "written", .bytes = bytes}, std::move(times));
}

enum class Work { Copy, Sum };

void work(Work what, const float* source, float* target, std::size_t bytes) {
  if (what == Work::Copy) {
    std::memcpy(target, source, bytes);
  } else {
    MPI_Reduce_local(source, target, static_cast<int>(bytes / 4), MPI_FLOAT, MPI_SUM);
  }
}

// Rank 0 alone works, on memory of its own.
Row alone(Work what, std::size_t bytes, bool quick) {
  Buffers buffers(bytes);
  std::vector<double> times;
  for (int i = 0; i < repeats_of(bytes, quick); ++i) {
    const int batch = batch_of(bytes);
    const double begin = now_us();
    for (int j = 0; j < batch; ++j) {
      work(what, buffers.first.data(), buffers.second.data(), bytes);
    }
    times.push_back((now_us() - begin) / batch);
  }
  return row_of(
      {.test = what == Work::Copy ? "copy" : "sum", .path = "memory", .ranks = 1, .bytes = bytes},
      std::move(times));
}

// Rank 0 works into memory of both, which rank 1 reads after each time.
Row rewrite(Work what, std::size_t bytes, bool quick) {
  MPI_Win window = MPI_WIN_NULL;
  float* own = nullptr;
  const int rank = own_rank();
  MPI_Win_allocate_shared(rank == 0 ? static_cast<MPI_Aint>(bytes) : 0, sizeof(float),
                          MPI_INFO_NULL, MPI_COMM_WORLD, &own, &window);
  MPI_Aint size = 0;
  int unit = 0;
  float* shared = nullptr;
  MPI_Win_shared_query(window, 0, &size, &unit, &shared);
  Buffers buffers(bytes);
  if (rank == 0) {
    std::memset(shared, 0, bytes);
  }
  std::vector<double> times;
  for (int i = 0; i < repeats_of(bytes, quick); ++i) {
    barrier();
    if (rank == 1) {
      std::memcpy(buffers.first.data(), shared, bytes);
    }
    barrier();
    const double begin = now_us();
    if (rank == 0) {
      work(what, buffers.first.data(), shared, bytes);
    }
    times.push_back(now_us() - begin);
  }
  MPI_Win_free(&window);
  return row_of({.test = what == Work::Copy ? "rewrite-copy" : "rewrite-sum",
                 .path = "memory",
                 .bytes = bytes},
                std::move(times));
}

// --- Sockets without MPI -------------------------------------------------------------------------

[[noreturn]] void give_up(const char* what) {
  std::perror(what);
  MPI_Abort(MPI_COMM_WORLD, 1);
  std::abort();
}

// A connection of ranks 0 and 1 over the loopback; ranks beyond them get -1.
int connect_ranks() {
  const int rank = own_rank();
  const int listener = rank == 0 ? socket(AF_INET, SOCK_STREAM, 0) : -1;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  if (rank == 0 && (bind(listener, any, length) != 0 || listen(listener, 1) != 0 ||
                    getsockname(listener, any, &length) != 0)) {
    give_up("listening on the loopback");
  }
  int port = address.sin_port;
  MPI_Bcast(&port, 1, MPI_INT, 0, MPI_COMM_WORLD);
  int end = -1;
  if (rank == 0) {
    end = accept(listener, nullptr, nullptr);
    close(listener);
  } else if (rank == 1) {
    address.sin_port = static_cast<in_port_t>(port);
    end = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(end, any, length) != 0) {
      give_up("connecting over the loopback");
    }
  }
  const int on = 1;
  if (rank < 2 && (end < 0 || setsockopt(end, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) != 0)) {
    give_up("a socket of the loopback");
  }
  return end;
}

void move_all(int end, char* data, std::size_t bytes, bool out) {
  while (bytes > 0) {
    const ssize_t moved = out ? ::send(end, data, bytes, 0) : recv(end, data, bytes, 0);
    if (moved <= 0) {
      give_up("moving bytes over the loopback");
    }
    data += moved;
    bytes -= static_cast<std::size_t>(moved);
  }
}

double cpu_us() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto us = [](const timeval& time) {
    return 1e6 * static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec);
  };
  return us(usage.ru_utime) + us(usage.ru_stime);
}

// A stream of messages from rank 0 to rank 1 that block instead of polling, so that CPU time is
// that of TCP; the time of a message is the wall's, over those of one repeat.
Row stream(int end, std::size_t bytes, bool quick) {
  const std::size_t messages =
      quick ? 50 : std::clamp<std::size_t>((std::size_t{64} << 20) / bytes, 100, 20'000);
  Buffers buffers(bytes);
  auto* const data = reinterpret_cast<char*>(buffers.first.data());
  std::vector<double> times;
  std::vector<double> costs;
  for (int i = 0; i < (quick ? 2 : 7); ++i) {
    barrier();
    const double cpu = cpu_us();
    const double begin = now_us();
    for (std::size_t j = 0; end >= 0 && j < messages; ++j) {
      move_all(end, data, bytes, own_rank() == 0);
    }
    const double both[2] = {own_rank() < 2 ? cpu_us() - cpu : 0.0, now_us() - begin};
    double cost = 0.0;
    double time = 0.0;
    MPI_Reduce(&both[0], &cost, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Reduce(&both[1], &time, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    times.push_back(time / static_cast<double>(messages));
    costs.push_back(cost / static_cast<double>(messages));
  }
  Row row = row_of({.test = "socket-stream", .path = "tcp", .bytes = bytes}, std::move(times));
  row.cpu_us = *std::min_element(costs.begin(), costs.end());
  return row;
}

Row socket_ping_pong(int end, std::size_t bytes, bool quick) {
  Buffers buffers(bytes);
  auto* const data = reinterpret_cast<char*>(buffers.first.data());
  std::vector<double> times;
  for (int i = 0; i < (quick ? 5 : 400); ++i) {
    const double begin = now_us();
    if (end >= 0) {
      move_all(end, data, bytes, own_rank() == 0);
      move_all(end, data, bytes, own_rank() != 0);
    }
    times.push_back((now_us() - begin) / 2.0);
  }
  return row_of({.test = "socket-ping-pong", .path = "tcp", .bytes = bytes}, std::move(times));
}

// --- Collectives ---------------------------------------------------------------------------------

constexpr const char* kOperations[] = {"all_reduce", "broadcast",      "reduce",
                                       "all_gather", "reduce_scatter", "alltoall"};

// Of `bytes` as nccl-tests counts them: what a rank holds where its buffer is largest.
void call(const std::string& operation, Buffers& buffers, int ranks) {
  float* const source = buffers.first.data();
  float* const target = buffers.second.data();
  const int count = static_cast<int>(buffers.first.size());
  const int part = count / ranks;
  if (operation == "all_reduce") {
    MPI_Allreduce(source, target, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  } else if (operation == "broadcast") {
    MPI_Bcast(source, count, MPI_FLOAT, 0, MPI_COMM_WORLD);
  } else if (operation == "reduce") {
    MPI_Reduce(source, target, count, MPI_FLOAT, MPI_SUM, 0, MPI_COMM_WORLD);
  } else if (operation == "all_gather") {
    MPI_Allgather(source, part, MPI_FLOAT, target, part, MPI_FLOAT, MPI_COMM_WORLD);
  } else if (operation == "alltoall") {
    MPI_Alltoall(source, part, MPI_FLOAT, target, part, MPI_FLOAT, MPI_COMM_WORLD);
  } else {
    const std::vector<int> counts(static_cast<std::size_t>(ranks), part);
    MPI_Reduce_scatter(source, target, counts.data(), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  }
}

Row collective(const std::string& operation, std::size_t bytes, bool quick) {
  Buffers buffers(bytes);
  std::vector<double> times;
  for (int i = 0; i < repeats_of(bytes, quick); ++i) {
    barrier();
    const double begin = now_us();
    call(operation, buffers, all_ranks());
    times.push_back(slowest_us(begin));
  }
  return row_of({.test = operation, .ranks = all_ranks(), .bytes = bytes}, std::move(times));
}

void give(Row row, const std::string& path, const Sink& sink) {
  row.path = path;
  if (own_rank() == 0) {
    sink(row);
  }
}

}  // namespace

void measure_memory(bool quick, const Sink& sink) {
  for (const Work what : {Work::Copy, Work::Sum}) {
    for (std::size_t bytes = 4096; bytes <= (quick ? 16384U : 4U << 20); bytes *= 2) {
      if (own_rank() == 0) {
        sink(alone(what, bytes, quick));
      }
      give(rewrite(what, bytes, quick), "memory", sink);
    }
  }
}

void measure_messages(const std::string& path, bool quick, const Sink& sink) {
  constexpr std::size_t kMost = std::size_t{16} << 20;
  for (const std::size_t bytes : sizes_up_to(path == "tcp" ? kMost / 16 : kMost, quick)) {
    give(ping_pong(bytes, false, quick), path, sink);
    // Of longer ones the copies of the receiver bound the sender.
    if (bytes <= 128) {
      give(sends(bytes, quick), path, sink);
    }
    // Shorter ones are copied twice, which these do not change.
    if (path == "shared" && bytes >= 4096) {
      give(exchange(bytes, false, quick), path, sink);
      give(exchange(bytes, true, quick), path, sink);
      give(written(bytes, quick), path, sink);
      give(ping_pong(bytes, true, quick), path, sink);
    }
  }
}

void measure_sockets(bool quick, const Sink& sink) {
  const int end = connect_ranks();
  for (const std::size_t bytes : sizes_up_to(std::size_t{256} << 10, quick)) {
    give(socket_ping_pong(end, bytes, quick), "tcp", sink);
    give(stream(end, bytes, quick), "tcp", sink);
  }
  if (end >= 0) {
    close(end);
  }
}

void measure_collectives(const std::string& path, bool quick, const Sink& sink) {
  for (const char* const operation : kOperations) {
    for (std::size_t bytes = 64; bytes <= (quick ? 4096U : 16U << 20); bytes *= 4) {
      give(collective(operation, bytes, quick), path, sink);
    }
  }
}

}  // namespace trainyard::hosts
