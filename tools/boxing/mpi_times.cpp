// SPDX-License-Identifier: Apache-2.0
// Times a collective of MPI over buffers in host memory, as tools/cluster-in-a-box runs it:
//
//   mpirun -n RANKS box-mpi-times allreduce|bcast|alltoall REPEATS BYTES...
//
// Prints for each size its bytes, and the median, least and greatest time of a call in
// microseconds. The time of a call is that of the slowest rank, from a barrier on. Sizes are those
// of nccl-tests: the bytes that a rank holds where its buffer is largest.
#include <mpi.h>
#include <sys/prctl.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

// Open MPI calls this where a rank has nothing to do (mpi_yield_when_idle), in place of the one
// of the C library. A rank that waits sleeps here, so that the ranks of a box share two cores.
extern "C" int sched_yield() noexcept {
  constexpr long kNap = 20'000;  // Nanoseconds, far below what a frame of a box takes.
  const timespec nap{0, kNap};
  nanosleep(&nap, nullptr);
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

// The slowest rank's time of one call, on rank 0.
double time_of_call(const std::string& operation, std::vector<float>& source,
                    std::vector<float>& target, int ranks) {
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin = MPI_Wtime();
  call(operation, source, target, ranks);
  const double own = MPI_Wtime() - begin;
  double slowest = 0.0;
  MPI_Reduce(&own, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  return 1e6 * slowest;
}

}  // namespace

int main(int argc, char** argv) {
  prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);  // Else a nap takes 50 us more.
  MPI_Init(&argc, &argv);
  int rank = 0;
  int ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const std::string operation = argc > 1 ? argv[1] : "";
  const int repeats = argc > 2 ? std::atoi(argv[2]) : 0;
  if (argc < 4 || repeats < 1 ||
      (operation != "allreduce" && operation != "bcast" && operation != "alltoall")) {
    std::fprintf(stderr, "usage: box-mpi-times allreduce|bcast|alltoall REPEATS BYTES...\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  for (int index = 3; index < argc; ++index) {
    const auto count = static_cast<std::size_t>(std::atoll(argv[index])) / sizeof(float);
    std::vector<float> source(count, 1.0F);
    std::vector<float> target(count);
    std::vector<double> times;
    for (int i = 0; i < kWarmUps + repeats; ++i) {
      const double time = time_of_call(operation, source, target, ranks);
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
