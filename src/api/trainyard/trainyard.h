// SPDX-License-Identifier: Apache-2.0
// Trainyard as a library: every command of the program, with its options, as a function. A call
// reads the same files, takes the same options and gives the same figures, to the last digit, as
// the command line; docs/commands describes them. This header and version.h are all that there is,
// and they need nothing but the standard library.
//
//   const trainyard::Cluster cluster("dgx-h100", 8, {"server.nics=4"});
//   const trainyard::Result result = cluster.collective("all_reduce", {{"minbytes", "64M"}});
//   std::cout << result.text() << result.number("results.0.time_us");
//
// Calls may be made by several threads at once. Nothing is written to standard streams, no signal
// is caught, and nothing ends the process but a mistake of Trainyard itself, a check that fails
// (CONTRIBUTING.md). Files are written where options name them.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <trainyard/version.h>

#define TRAINYARD_EXPORT __attribute__((visibility("default")))

// The inner namespace is that of the binary interface: libraries of two versions do not mix.
namespace trainyard {
inline namespace v0 {

// Input that cannot be used, or a machine that lacks what the run needs. what() is the one line
// that the program prints: "--nodes: expected a whole number from 1 to 1000000, found "0"".
class TRAINYARD_EXPORT Error : public std::runtime_error {
 public:
  explicit Error(const std::string& line);
  ~Error() override;
  // The part of the line that says where: "--nodes", "mine.yaml:14:12: links[2].bandwidth"; empty
  // where the line does not say.
  [[nodiscard]] const std::string& place() const noexcept { return place_; }

 private:
  std::string place_;
};

// The run ended because its caller wanted that (Watch). No results were written.
class TRAINYARD_EXPORT Cancelled : public std::runtime_error {
 public:
  Cancelled();
  ~Cancelled() override;
};

// An option of a command, by its name on the command line without dashes.
class TRAINYARD_EXPORT Option {
 public:
  // An option without a value: {"fingerprint"}.
  Option(std::string name);  // NOLINT(*-explicit-*): lists of options are written in braces.
  Option(std::string name, std::string value);
  Option(std::string name, const char* value);
  Option(std::string name, std::int64_t value);
  Option(std::string name, int value);
  Option(std::string name, double value);

  // "--name=value" or "--name".
  [[nodiscard]] const std::string& word() const { return word_; }

 private:
  std::string word_;
};
// An option that repeats comes several times.
using OptionList = std::vector<Option>;

// A signal says what has happened to a flow of the packet engine under a control of the caller: its
// first packet is still to come, new bytes are acknowledged, a packet is known to be lost, or
// nothing came for as long as the transport waits. Sizes are those on the wire.
struct FlowSignal {
  enum class Kind : std::uint8_t { Start, Ack, Loss, Timeout };
  Kind kind = Kind::Start;
  std::uint64_t flow = 0;  // Counted over all that one call runs.
  std::int64_t now_ps = 0;
  // These are the same for all signals of a flow: the rate of its port, its round trip with
  // everything idle, and the size of a full packet.
  std::int64_t line_bits_per_second = 0;
  std::int64_t base_rtt_ps = 0;
  std::int64_t packet_bytes = 0;
  // These are told with Ack. The round trip is 0 where the packet was sent again.
  std::int64_t rtt_ps = 0;
  std::uint64_t acked = 0;      // All bytes before this one have come.
  std::uint64_t next = 0;       // The flow sends this byte next.
  std::int64_t size_bytes = 0;  // So many bytes are newly acknowledged.
  bool is_marked = false;       // The packet was marked on its way (ECN).
};

// The flow sends so until its next signal.
struct FlowPace {
  std::int64_t window_bytes = 0;     // The most that may be under way; 0: no limit.
  std::int64_t bits_per_second = 0;  // 0: the rate of the port, which is also the most.
};

// The caller may do this while a run goes on.
struct Watch {
  // Ends the run, which then throws Cancelled, within a few milliseconds of a simulation. Reading
  // files, building a cluster and planning one communicator go on to their own end.
  std::stop_token stop = {};
  // Gets how far the run is, as people read it ("points: 3 of 12, about 40 s left"), at most five
  // times a second, from a thread of the library. It must not throw.
  std::function<void(std::string_view)> progress = {};
  // A congestion control, for runs whose option `control` is a file with `algorithm: callback`. It
  // is called by one thread in an order that is the same in each run, and must not throw. The run
  // takes one thread, and more of them are refused.
  std::function<FlowPace(const FlowSignal&)> control = {};
};

// A value of a result; the first one is "no value".
using Value = std::variant<std::monostate, bool, std::int64_t, double, std::string>;

// A table of a result. Keys carry units: "time_us".
struct Table {
  std::vector<std::string> columns = {};
  std::vector<std::vector<Value>> rows = {};  // Each has as many values as there are columns.
};

// A command found this. Figures have paths, of keys and positions from zero in json():
// "step_time_s", "results.0.time_us".
class TRAINYARD_EXPORT Result {
 public:
  struct Content;
  explicit Result(std::unique_ptr<const Content> content);
  Result(Result&& other) noexcept;
  Result& operator=(Result&& other) noexcept;
  ~Result();

  // The status with which the program would exit: 0; 1 where the command judges and found fault,
  // such as `check` and `validate`, or a point of a sweep failed.
  [[nodiscard]] int status() const;
  // This is what the program prints.
  [[nodiscard]] const std::string& text() const;
  // These are what it prints with --format csv and json. Commands without them throw Error.
  [[nodiscard]] std::string csv() const;
  [[nodiscard]] std::string json() const;
  [[nodiscard]] bool has_json() const;
  // Lines that the program writes to standard error: "warning: ...".
  [[nodiscard]] const std::vector<std::string>& log() const;

  // These throw Error where json() has no such path, or another kind of value there.
  [[nodiscard]] double number(std::string_view path) const;
  [[nodiscard]] Value value(std::string_view path) const;
  // The array of objects there; the whole result where the path is empty. Columns are all keys of
  // the objects in the order in which they appear; values of other kinds are their JSON.
  [[nodiscard]] Table table(std::string_view path) const;

 private:
  std::unique_ptr<const Content> content_;
};

// Runs a command line, without "trainyard": {"collective", "all_reduce", "--cluster", "dgx-h100"}.
// Throws Error, Cancelled, or std::exception for a mistake of Trainyard.
[[nodiscard]] TRAINYARD_EXPORT Result run(const std::vector<std::string>& words,
                                          const Watch& watch = {});
// The same for a command ("explain step"), its arguments and its options.
[[nodiscard]] TRAINYARD_EXPORT Result run(const std::string& command,
                                          const std::vector<std::string>& arguments,
                                          const OptionList& options, const Watch& watch = {});

// A cluster: a file, or a name that Trainyard ships, with changes. Each run reads it anew, and says
// what is wrong with it.
class TRAINYARD_EXPORT Cluster {
 public:
  // `nodes`: instead of those of the file, unless it is 0. `settings`: "key.path=value", as --set.
  explicit Cluster(std::string name_or_file, int nodes = 0, std::vector<std::string> settings = {});

  [[nodiscard]] Result collective(const std::string& operation, const OptionList& options = {},
                                  const Watch& watch = {}) const;
  [[nodiscard]] Result step(const std::string& workload, const OptionList& options = {},
                            const Watch& watch = {}) const;
  [[nodiscard]] Result search(const std::string& workload, const OptionList& options = {},
                              const Watch& watch = {}) const;
  [[nodiscard]] Result traffic(const std::string& file, const OptionList& options = {},
                               const Watch& watch = {}) const;
  // Any command with --cluster.
  [[nodiscard]] Result run(const std::string& command, const std::vector<std::string>& arguments,
                           const OptionList& options = {}, const Watch& watch = {}) const;

 private:
  OptionList options_;
};

// A row of the tables of commands and options, which say the same as --help.
struct OptionRow {
  std::string name = {};
  std::string value = {};  // The name of its value; empty: it has none.
  std::string help = {};
  // All values that it may have, the default first; empty: any.
  std::vector<std::string> choices = {};
  bool is_argument = false;  // Given without a name, in order.
  bool repeats = false;
};
struct CommandRow {
  std::string name = {};  // "collective", "explain step"
  std::string summary = {};
  std::vector<OptionRow> options = {};  // Arguments first.
};
[[nodiscard]] TRAINYARD_EXPORT std::vector<CommandRow> commands();

// The program `trainyard`, for its main(): it writes to standard streams, handles crashes, and
// under mpirun becomes another program. Returns the exit status.
[[nodiscard]] TRAINYARD_EXPORT int run_program(int argc, char** argv);

}  // namespace v0
}  // namespace trainyard
