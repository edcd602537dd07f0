// SPDX-License-Identifier: Apache-2.0
// Times a collective of MPI over buffers in host memory, as tools/cluster-in-a-box runs it:
//
//   mpirun -n RANKS box-mpi-times allreduce|bcast|alltoall REPEATS [together] BYTES...
//
// Prints for each size its bytes, and the median, least and greatest time of a call in
// microseconds. The time of a call is that of the slowest rank, from a barrier on, or, together,
// from an instant on that is 5 ms after the root has gone to the barrier: ranks that share a few
// cores leave a barrier one after the other. Sizes are those of nccl-tests: the bytes that a rank
// holds where its buffer is largest.
#include <mpi.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

// A rank that waits sleeps until a socket has something for it: ranks that poll would take the
// cores of a box from each other. Open MPI asks epoll_wait whether there is something, and then
// calls sched_yield (mpi_yield_when_idle), also if there was; both stand here in place of those
// of the C library.
thread_local pollfd t_asked{-1, POLLIN, 0};
thread_local bool t_has_found = false;  // Since sched_yield was called last.

extern "C" int epoll_wait(int file, epoll_event* events, int most, int timeout_ms) {
  const auto found = static_cast<int>(syscall(SYS_epoll_wait, file, events, most, timeout_ms));
  t_asked.fd = file;
  t_has_found = t_has_found || found > 0;
  return found;
}

extern "C" int sched_yield() noexcept {
  constexpr int kLongestNapMs = 1;  // If something is to be done that no socket tells.
  if (!t_has_found) {
    poll(&t_asked, 1, kLongestNapMs);
  }
  t_has_found = false;
  return 0;
}

namespace {

constexpr int kWarmUps = 2;

// Runs one call on `bytes` bytes of floats.
void call(const std::string& operation, std::vector<float>& source, std::vector<float>& target,
          int ranks) {
  const int count = static_cast<int>(source.size());
  if (operation == "allreduce") {
    MPI_Allreduce(source.data(), target.data(), count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  } else if (operation == "bcast") {
    MPI_Bcast(source.data(), count, MPI_FLOAT, 0, MPI_COMM_WORLD);
  } else {
    MPI_Alltoall(source.data(), count / ranks, MPI_FLOAT, target.data(), count / ranks, MPI_FLOAT,
                 MPI_COMM_WORLD);
  }
}

// Lets all ranks go at once. All have the same clock, as they are on one machine; nobody reads
// messages meanwhile.
void wait_for_instant() {
  using Clock = std::chrono::steady_clock;
  long long at = (Clock::now() + std::chrono::milliseconds(5)).time_since_epoch().count();
  MPI_Bcast(&at, 1, MPI_LONG_LONG, 0, MPI_COMM_WORLD);
  MPI_Barrier(MPI_COMM_WORLD);
  std::this_thread::sleep_until(Clock::time_point(Clock::duration(at)));
}

// The slowest rank's time of one call, on rank 0.
double time_of_call(const std::string& operation, std::vector<float>& source,
                    std::vector<float>& target, int ranks, bool is_together) {
  if (is_together) {
    wait_for_instant();
  } else {
    MPI_Barrier(MPI_COMM_WORLD);
  }
  const double begin = MPI_Wtime();
  call(operation, source, target, ranks);
  const double own = MPI_Wtime() - begin;
  double slowest = 0.0;
  MPI_Reduce(&own, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  return 1e6 * slowest;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  int ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const std::string operation = argc > 1 ? argv[1] : "";
  const int repeats = argc > 2 ? std::atoi(argv[2]) : 0;
  const bool is_together = argc > 3 && std::string(argv[3]) == "together";
  const int first = is_together ? 4 : 3;
  if (argc <= first || repeats < 1 ||
      (operation != "allreduce" && operation != "bcast" && operation != "alltoall")) {
    std::fprintf(stderr,
                 "usage: box-mpi-times allreduce|bcast|alltoall REPEATS "
                 "[together] BYTES...\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  for (int index = first; index < argc; ++index) {
    const auto count = static_cast<std::size_t>(std::atoll(argv[index])) / sizeof(float);
    std::vector<float> source(count, 1.0F);
    std::vector<float> target(count);
    std::vector<double> times;
    for (int i = 0; i < kWarmUps + repeats; ++i) {
      const double time = time_of_call(operation, source, target, ranks, is_together);
      if (i >= kWarmUps) {
        times.push_back(time);
      }
    }
    std::sort(times.begin(), times.end());
    if (rank == 0) {
      std::printf("%zu %.2f %.2f %.2f\n", count * sizeof(float), times[times.size() / 2],
                  times.front(), times.back());
    }
  }
  MPI_Finalize();
  return 0;
}
