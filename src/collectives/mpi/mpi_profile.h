// SPDX-License-Identifier: Apache-2.0
// The costs of messages of MPI to the CPUs that send and receive them, read from
// configs/mpi/profile.yaml. docs/models/mpi.md has the equations.
#pragma once

#include <filesystem>

#include "sim/units.h"

namespace trainyard {

class Fields;

struct MpiProfile {
  // Inside a host: through memory that both have mapped, or, above `eager`, read by the receiver
  // from where it lies.
  struct Shared {
    SimTime send;        // CPU time of a message at its sender,
    SimTime receive;     // and at its receiver.
    SimTime latency;     // Until the other CPU sees it.
    Bytes eager;         // From this size on the receiver reads it in place.
    Bandwidth copy;      // Each of two copies, below `eager`.
    SimTime rendezvous;  // CPU time of the receiver for a message that it reads in place,
    Bandwidth read;      // and its rate,
    Bytes cached;        // from this size on
    Bandwidth uncached;  // this one.
  };
  // Between hosts: by the sockets of the kernel.
  struct Tcp {
    SimTime send;     // CPU time of a message at its sender, system call included,
    SimTime receive;  // and at its receiver.
    Bytes eager;      // From this size on the sender asks first.
    Bytes fragment;   // The receiver copies the last part of this size after it has come.
    Bandwidth copy;   // Each of two copies.
  };
  Shared shared;
  Tcp tcp;
  Bandwidth sum;      // Sums of floats in host memory, by the bytes of one addend,
  Bandwidth copy;     // and from one buffer of a rank to another.
  Bandwidth rewrite;  // Both, into lines that the caches of other ranks have read before.

  // Throws ConfigError.
  [[nodiscard]] static MpiProfile load(const std::filesystem::path& file);
};

void mpi_fields(Fields& fields, MpiProfile& profile);

}  // namespace trainyard
