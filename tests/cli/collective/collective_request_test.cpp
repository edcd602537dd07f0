// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "cli/collective/collective_request.h"

#include <string>
#include <vector>

#include "cli/common/commands.h"
#include "sim/config_error.h"

namespace trainyard {
namespace {

using namespace literals;

CollectiveRequest request_of(const std::vector<std::string>& arguments) {
  return read_collective_request(parse_options(collective_command(), arguments));
}

CollectiveRequest with(const std::string& operation, std::vector<std::string> more) {
  more.insert(more.begin(), {operation, "--cluster", "dgx-h100", "--runtime", "plain"});
  return request_of(more);
}

}  // namespace

TEST_CASE("a request of the plain runtime is all algorithms, at the fidelity flow") {
  const CollectiveRequest request = with("all_reduce", {});
  REQUIRE(request.operation == Operation::AllReduce);
  REQUIRE(request.inputs.cluster == "dgx-h100");
  REQUIRE(request.algorithms == algorithms_for(Operation::AllReduce));
  REQUIRE(request.auto_algorithms);
  REQUIRE_FALSE(with("all_reduce", {"--algo", "ring"}).auto_algorithms);
  REQUIRE(request.runtime.engine == Fidelity::Flow);
  REQUIRE(!request.ranks);
  REQUIRE(!request.min_size);
  REQUIRE(!request.seed);
  REQUIRE(request.threads == 0);
  REQUIRE(with("all_reduce", {"--algo", "auto"}).algorithms == request.algorithms);
  const CollectiveRequest usual = request_of({"all_reduce", "--cluster", "dgx-h100"});
  REQUIRE(usual.runtime.nccl == nccl::kNewestVersion);
  REQUIRE(usual.nccl.has_value());
}

TEST_CASE("every option of a request is read") {
  const CollectiveRequest request = with("broadcast", {"-b",
                                                       "1K",
                                                       "-e",
                                                       "1M",
                                                       "-f",
                                                       "4",
                                                       "--ranks",
                                                       "8",
                                                       "--algo",
                                                       "tree,ring",
                                                       "--channels",
                                                       "3",
                                                       "--chunk",
                                                       "64K",
                                                       "--root",
                                                       "7",
                                                       "--fidelity",
                                                       "analytical",
                                                       "--seed",
                                                       "0",
                                                       "--threads",
                                                       "2",
                                                       "--fingerprint",
                                                       "--format",
                                                       "json",
                                                       "--against",
                                                       "log",
                                                       "--against-other-ranks"});
  REQUIRE(request.min_size == 1_KiB);
  REQUIRE(request.greatest_size == 1_MiB);
  REQUIRE(request.factor == 4);
  REQUIRE(request.ranks == 8);
  REQUIRE(request.algorithms == std::vector<Algorithm>{&kTree, &kRing});
  REQUIRE(request.channels == 3);
  REQUIRE(request.piece == 64_KiB);
  REQUIRE(request.root == 7);
  REQUIRE(request.runtime.engine == Fidelity::Analytical);
  REQUIRE(request.seed == 0U);
  REQUIRE(request.threads == 2);
  REQUIRE(request.fingerprint);
  REQUIRE(request.result.format == Format::Json);
  REQUIRE(request.against == "log");
  REQUIRE(request.against_other_ranks);
}

TEST_CASE("ranks of a list rise, as they are placed in the order of GPUs") {
  REQUIRE(with("all_reduce", {"--ranks", "0,8-10"}).rank_list == std::vector<int>{0, 8, 9, 10});
  for (const std::string list : {"8,0", "0,0", "0-3,2", "1-", "4:2"}) {
    REQUIRE_THROWS_WITH(
        with("all_reduce", {"--ranks", list}),
        "--ranks: expected a number, or ranks that rise, such as 0,8,16, 0-7 or 0-63:8, as ranks "
        "are placed in the order of GPUs (--root chooses where one starts), found \"" +
            list + "\"");
  }
}

TEST_CASE("a request that would silently change nothing is refused") {
  REQUIRE_THROWS_WITH(with("all_reduce", {"--root", "0"}),
                      "--root: expected operation broadcast, reduce, scatter or gather beside it, "
                      "found all_reduce");
  REQUIRE_THROWS_WITH(with("all_reduce", {"--against-other-ranks"}),
                      "--against-other-ranks: expected --against FILE beside it, found none");
  REQUIRE_THROWS_WITH(with("all_reduce", {"--algo", "auto,ring"}),
                      "--algo: expected auto alone, or some of ring, tree, halving-doubling, "
                      "halving-doubling-far, pairwise, direct, nvls, sharp, recursive-doubling, "
                      "bruck, hierarchical, "
                      "multi-ring, pat, nvls-tree, two-hop, dissemination, swing, found "
                      "\"auto\"");
}

TEST_CASE("a barrier has no sizes to choose or to compare") {
  REQUIRE(with("barrier", {}).algorithms == std::vector<Algorithm>{&kDissemination});
  for (const char* option : {"--minbytes", "--maxbytes", "--stepfactor", "--against"}) {
    REQUIRE_THROWS_WITH(
        with("barrier", {option, "8"}),
        std::string(option) +
            ": expected operation all_reduce, all_gather, reduce_scatter, alltoall, broadcast, "
            "reduce, sendrecv, scatter or gather beside it, found barrier");
  }
  REQUIRE_FALSE(request_of({"barrier", "--cluster", "mi300x"}).runtime.nccl.has_value());
  REQUIRE_THROWS_WITH(request_of({"barrier", "--cluster", "mi300x", "--runtime", "nccl"}),
                      "--runtime: expected plain, found \"nccl\"");
}

TEST_CASE("alltoallv has a matrix instead of sizes, and nothing else has one") {
  REQUIRE(with("alltoallv", {"--matrix", "m.csv"}).matrix == "m.csv");
  REQUIRE_THROWS_WITH(with("alltoallv", {}), "alltoallv: expected --matrix FILE, found none");
  REQUIRE_THROWS_WITH(with("alltoall", {"--matrix", "m.csv"}),
                      "--matrix: expected operation alltoallv beside it, found alltoall");
  REQUIRE_THROWS_WITH(with("alltoallv", {"--matrix", "m.csv", "-b", "8"}),
                      "--minbytes: expected operation all_reduce, all_gather, reduce_scatter, "
                      "alltoall, broadcast, reduce, sendrecv, scatter or gather beside it, found "
                      "alltoallv");
}

TEST_CASE("the operation is one of nccl-tests, or barrier") {
  const std::string names =
      "all_reduce, all_gather, reduce_scatter, alltoall, alltoallv, broadcast, reduce, sendrecv, "
      "scatter, gather, barrier";
  REQUIRE_THROWS_WITH(request_of({"--cluster", "dgx-h100"}),
                      "collective: expected an operation, one of " + names +
                          ", found none; see trainyard collective --help");
  REQUIRE_THROWS_WITH(with("allreduce", {}), "collective: expected an operation, one of " + names +
                                                 ", found \"allreduce\"; did you mean "
                                                 "\"all_reduce\"?");
}

}  // namespace trainyard
