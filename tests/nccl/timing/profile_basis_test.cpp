// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "nccl/timing/profile_basis.h"
#include "sim/fields.h"

#include <string>

#include "sim/config.h"

namespace trainyard::nccl {
namespace {

ProfileBasis basis_of(const std::string& rows) {
  ConfigDocument document = ConfigDocument::parse(
      "cluster: a\nfiles: [a.log]\nmachine: {gpu: hopper, scale_up: nvswitch, network: none}\n"
      "rows: " +
          rows,
      "profile.yaml");
  ProfileBasis basis;
  read_fields(document.root(), basis, basis_fields);
  document.finish();
  return basis;
}

const MachineKind kMachine{.gpu = "hopper", .scale_up = "nvswitch", .network = "none"};

std::string basis_error(const std::string& rows) {
  try {
    (void)basis_of(rows);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("predictions beyond what a profile rests on are told apart") {
  const ProfileBasis basis = basis_of(
      "[{operation: all_reduce, ranks: 8, from: 1 KiB, to: 1 MiB, count: 11},"
      " {operation: all_reduce, ranks: 4, from: 1 KiB, to: 1 MiB, count: 11}]");
  const auto beyond = [&](Operation operation, int ranks, Bytes size) {
    return basis.beyond(kMachine, operation, ranks, size).value_or("");
  };
  REQUIRE(beyond(Operation::AllReduce, 8, kib(1)).empty());
  REQUIRE(beyond(Operation::AllReduce, 8, mib(1)).empty());
  REQUIRE(beyond(Operation::AllReduce, 8, mib(2)) == "rows of all_reduce from 1KiB to 1MiB");
  REQUIRE(beyond(Operation::AllReduce, 2, mib(1)) == "rows of all_reduce with 4, 8 ranks, not 2");
  REQUIRE(beyond(Operation::AllToAll, 8, mib(1)) == "no row of alltoall");
  const MachineKind other{.gpu = "hopper", .scale_up = "nvswitch", .network = "rdma"};
  REQUIRE(basis.beyond(other, Operation::AllReduce, 8, mib(1)).value() ==
          "measured was hopper, nvswitch, none, not hopper, nvswitch, rdma");
}

TEST_CASE("a basis is read strictly") {
  REQUIRE(basis_error("[]").find("expected at least one entry, found none") != std::string::npos);
  REQUIRE(basis_error("[{operation: allreduce, ranks: 8, from: 1 B, to: 2 B, count: 1}]")
              .find("operation: expected all_reduce, ") != std::string::npos);
  REQUIRE(basis_error("[{operation: alltoall, ranks: 8, from: 4 B, to: 2 B, count: 1}]")
              .find("to: expected at least the size of `from`") != std::string::npos);
  REQUIRE(basis_error("[{operation: alltoall, ranks: 0, from: 1 B, to: 2 B, count: 1}]")
              .find("ranks: expected ") != std::string::npos);
}

}  // namespace trainyard::nccl
