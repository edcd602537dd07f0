// SPDX-License-Identifier: Apache-2.0
// The figures of docs/models/dcqcn.md are drawn from docs/figures/*.csv by tools/plot, and these
// are what the packet engine says. UPDATE_GOLDEN=1 rewrites them; whoever does so draws the figures
// again.
#include "support/catch.h"

#include <spdlog/fmt/fmt.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "support/dcqcn_fluid.h"
#include "support/effort.h"
#include "support/fabrics.h"
#include "support/long_incast.h"
#include "support/paths.h"
#include "support/program.h"

namespace trainyard {
namespace {

using namespace literals;

// As the paper has it, or as NICs do.
LongIncast incast_of(bool is_paper, std::uint32_t flows) {
  const Bandwidth rate = gigabits_per_second(is_paper ? 40 : 100);
  LongIncast incast{.flows = flows, .link = fabric_link(rate, 1_us)};
  incast.options = roce_options();
  incast.options.rates = RateMeaning::Line;
  if (is_paper) {
    incast.options.control = CongestionControl::DcqcnPaper;
    incast.options.ecn = EcnPreset::Dcqcn;
  }
  return incast;
}

// Packets of 1000 B, as the fluid model counts them.
LongIncast small_packets(std::uint32_t flows, SimTime latency) {
  LongIncast incast = incast_of(true, flows);
  incast.link.latency = latency;
  incast.options.mtu = 918_B;
  incast.options.verb = RdmaVerb::Send;
  incast.spread = 3_ms;
  return incast;
}

// Rates of four flows, one more each 50 ms.
std::string convergence(bool is_paper) {
  LongIncast incast = incast_of(is_paper, 4);
  incast.starts = {0_ms, 50_ms, 100_ms, 150_ms};
  incast.interval = 1_ms;
  const IncastRun run = run_long_incast(incast, 250_ms);
  std::string text = fmt::format("# title: {}: a flow more each 50 ms, rates over 1 ms\n",
                                 is_paper ? "dcqcn-paper, 40 Gb/s" : "dcqcn-nic, 100 Gb/s");
  text += "# y: rate (Gb/s)\ntime (ms),flow 1,flow 2,flow 3,flow 4\n";
  for (std::size_t i = 1; i < run.samples.size(); ++i) {
    text += fmt::format("{}", i + 1);
    for (std::size_t flow = 0; flow < 4; ++flow) {
      const std::int64_t bytes = run.samples[i].sent[flow] - run.samples[i - 1].sent[flow];
      text += fmt::format(",{:.2f}", static_cast<double>(bytes) * 8.0 / 1e6);
    }
    text += '\n';
  }
  return text;
}

// The mean queue over 400 ms, and where the equations have it.
std::string queues() {
  std::string text =
      "# title: mean queue, dcqcn-paper at 40 Gb/s, packets of 1000 B\n# y: queue (kB)\n"
      "flows,packet engine,from CNP to CNP,fluid model,from CNP to CNP without dead time\n";
  for (const std::uint32_t flows : {2U, 3U, 4U, 6U, 8U, 10U, 12U, 16U}) {
    const LongIncast incast = small_packets(flows, 1_us);
    const DcqcnSettings settings =
        dcqcn_settings(CongestionControl::DcqcnPaper, incast.link.bandwidth);
    const RedProfile red = red_profile(EcnPreset::Dcqcn, incast.link.bandwidth);
    DcqcnFluid fluid{.line = incast.link.bandwidth,
                     .additive = settings.additive,
                     .hyper = settings.hyper,
                     .byte_counter = settings.byte_counter,
                     .rate_timer = settings.rate_timer,
                     .cnp_interval = cnp_interval(CongestionControl::DcqcnPaper),
                     .alpha_interval = settings.alpha_interval,
                     .threshold = settings.threshold,
                     .packet = 1000_B,
                     .kmin = red.kmin,
                     .kmax = red.kmax,
                     .pmax = red.pmax};
    const IncastRun run = run_long_incast(incast, 500_ms);
    const double mean = summarise(incast, run, 100_ms, 500_ms).queue_mean;
    const auto number = static_cast<int>(flows);
    text += fmt::format("{},{:.1f},{:.1f},{:.1f}", flows, mean / 1e3,
                        dcqcn_cycle_point(fluid, number).queue / 1e3,
                        dcqcn_fixed_point(fluid, number).queue / 1e3);
    fluid.cnp_interval = SimTime();
    text += fmt::format(",{:.1f}\n", dcqcn_cycle_point(fluid, number).queue / 1e3);
  }
  return text;
}

// The queue of ten flows behind short links and behind long ones.
std::string delays() {
  std::vector<IncastRun> runs;
  for (const SimTime latency : {1_us, nanoseconds(21'250)}) {
    LongIncast incast = small_packets(10, latency);
    incast.interval = 20_us;
    runs.push_back(run_long_incast(incast, 110_ms));
  }
  std::string text =
      "# title: queue of ten flows, dcqcn-paper at 40 Gb/s\n# y: queue (kB)\n"
      "time (ms),4 us of feedback delay,85 us\n";
  for (std::size_t i = 0; i < runs[0].samples.size(); ++i) {
    if (runs[0].samples[i].time > 100_ms) {
      text += fmt::format("{:.2f},{:.1f},{:.1f}\n", runs[0].samples[i].time.seconds() * 1e3,
                          static_cast<double>(runs[0].samples[i].queue) / 1e3,
                          static_cast<double>(runs[1].samples[i].queue) / 1e3);
    }
  }
  return text;
}

// How far the flow furthest from its fair share is, on average over times of each length.
std::string fairness() {
  constexpr std::int64_t kTotal = 800;  // Milliseconds.
  std::string text =
      "# title: the flow that is furthest from its fair share\n# y: error (%)\n# x: log\n"
      "averaged over (ms),nic 2 flows,nic 4,nic 16,paper 2,paper 4,paper 16\n";
  std::vector<std::int64_t> lengths{10, 20, 50, 100, 200, 400, kTotal};
  std::vector<std::string> rows;
  for (const std::int64_t length : lengths) {
    rows.push_back(fmt::format("{}", length));
  }
  for (const bool is_paper : {false, true}) {
    for (const std::uint32_t flows : {2U, 4U, 16U}) {
      LongIncast incast = incast_of(is_paper, flows);
      incast.interval = 10_ms;
      const IncastRun run = run_long_incast(incast, milliseconds(100 + kTotal));
      for (std::size_t i = 0; i < lengths.size(); ++i) {
        double sum = 0.0;
        const std::int64_t parts = kTotal / lengths[i];
        for (std::int64_t part = 0; part < parts; ++part) {
          const SimTime from = milliseconds(100 + part * lengths[i]);
          sum += summarise(incast, run, from, from + milliseconds(lengths[i])).share_error;
        }
        rows[i] += fmt::format(",{:.1f}", 100.0 * sum / static_cast<double>(parts));
      }
    }
  }
  for (const std::string& row : rows) {
    text += row + '\n';
  }
  return text;
}

void require_same(const std::string& name, const std::string& text) {
  const std::filesystem::path file = source_dir() / "docs/figures" / (name + ".csv");
  if (std::getenv("UPDATE_GOLDEN") != nullptr) {
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary) << text;
  }
  INFO(name);
  REQUIRE(text == read_text_file(file));
}

}  // namespace

TEST_CASE("the figures of DCQCN are what the packet engine says", "[golden][dcqcn]") {
  require_same("dcqcn-paper-convergence", convergence(true));
  require_same("dcqcn-nic-convergence", convergence(false));
  require_same("dcqcn-delay", delays());
}

TEST_CASE("the tables of DCQCN are what the packet engine says", "[golden][dcqcn]") {
  if (kIsSanitized) {
    return;  // Minutes.
  }
  require_same("dcqcn-queue", queues());
  require_same("dcqcn-fairness", fairness());
}

}  // namespace trainyard
