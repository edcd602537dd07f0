// SPDX-License-Identifier: Apache-2.0
// box-cable: joins two network namespaces by a cable with delay, loss and marks, a TAP device at
// each end (README.md). It says "ready" when both are up, and what it carried as
// one line of JSON when a signal ends it; the devices go with it.
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <deque>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "line.h"

namespace trainyard::box {
namespace {

constexpr const char* kUsage =
    "box-cable NAMESPACE NAMESPACE DEVICE [--rate BITS_PER_SECOND] [--queue BYTES] [--delay-us N]\n"
    "          [--loss SHARE] [--mark-from BYTES] [--seed N]\n";

volatile std::sig_atomic_t is_ended = 0;

[[noreturn]] void fail(const std::string& what) {
  throw std::runtime_error(what + ": " + std::strerror(errno));
}

std::int64_t now_ns() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<std::int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

// A TAP device in a namespace. The descriptor stays with the device wherever the process goes.
int open_tap(const std::string& space, const std::string& device) {
  const int handle = open(("/run/netns/" + space).c_str(), O_RDONLY | O_CLOEXEC);
  if (handle < 0 || setns(handle, CLONE_NEWNET) != 0) {
    fail("namespace " + space);
  }
  close(handle);
  const int tap = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
  ifreq request{};
  // Without offloads, so that frames come as they would be on a cable.
  request.ifr_flags = IFF_TAP | IFF_NO_PI;
  device.copy(request.ifr_name, IFNAMSIZ - 1);
  if (tap < 0 || ioctl(tap, TUNSETIFF, &request) != 0) {
    fail("TAP device " + device + " in " + space);
  }
  return tap;
}

template <typename Number>
Number number(std::string_view option, std::string_view text, Number least, Number most) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !(value >= least) ||
      !(value <= most)) {
    throw std::runtime_error(std::string(option) + ": expected a number from " +
                             std::to_string(least) + " to " + std::to_string(most) + ", found \"" +
                             std::string(text) + "\"");
  }
  return value;
}

struct Options {
  std::array<std::string, 2> spaces;
  std::string device;
  LineOptions line;
};

Options parse(const std::vector<std::string_view>& words) {
  constexpr std::int64_t kMost = 1'000'000'000'000;
  if (words.size() < 3 || words.size() % 2 == 0) {
    throw std::runtime_error(std::string("usage: ") + kUsage);
  }
  Options options{{std::string(words[0]), std::string(words[1])}, std::string(words[2]), {}};
  LineOptions& line = options.line;
  for (std::size_t i = 3; i < words.size(); i += 2) {
    const auto whole = [&](std::int64_t most) {
      return number<std::int64_t>(words[i], words[i + 1], 0, most);
    };
    if (words[i] == "--rate") {
      line.bits_per_second = whole(kMost);
    } else if (words[i] == "--queue") {
      line.queue_bytes = whole(kMost);
    } else if (words[i] == "--delay-us") {
      line.delay_ns = 1000 * whole(10'000'000);
    } else if (words[i] == "--mark-from") {
      line.mark_from_bytes = whole(kMost);
    } else if (words[i] == "--seed") {
      line.seed = static_cast<std::uint64_t>(whole(kMost));
    } else if (words[i] == "--loss") {
      line.loss = number<double>(words[i], words[i + 1], 0.0, 1.0);
    } else {
      throw std::runtime_error("unknown option " + std::string(words[i]) + "\n" + kUsage);
    }
  }
  if (line.mark_from_bytes > 0 && line.bits_per_second == 0) {
    throw std::runtime_error("--mark-from needs --rate: without it nothing waits");
  }
  return options;
}

struct Frame {
  std::int64_t arrives_ns;
  std::vector<unsigned char> bytes;
};

// One way through the cable, from the TAP device that it reads to the one that it writes.
struct Way {
  int from;
  int to;
  Line line;
  std::deque<Frame> under_way;
  std::vector<std::int64_t> late_ns;  // Of each frame that was written.

  void take() {
    std::array<unsigned char, 65536> buffer{};
    while (true) {
      const ssize_t size = read(from, buffer.data(), buffer.size());
      if (size <= 0) {
        return;
      }
      const std::span<unsigned char> frame(buffer.data(), static_cast<std::size_t>(size));
      if (const auto arrives_ns = line.send(now_ns(), frame)) {
        under_way.push_back({*arrives_ns, {frame.begin(), frame.end()}});
      }
    }
  }

  void deliver() {
    while (!under_way.empty() && under_way.front().arrives_ns <= now_ns()) {
      const Frame& frame = under_way.front();
      late_ns.push_back(now_ns() - frame.arrives_ns);
      // A device that is down takes nothing, as a port without a cable.
      [[maybe_unused]] const ssize_t written = write(to, frame.bytes.data(), frame.bytes.size());
      under_way.pop_front();
    }
  }
};

void carry(std::array<Way, 2>& ways) {
  while (is_ended == 0) {
    std::int64_t next_ns = now_ns() + 100'000'000;
    for (const Way& way : ways) {
      if (!way.under_way.empty()) {
        next_ns = std::min(next_ns, way.under_way.front().arrives_ns);
      }
    }
    const std::int64_t wait_ns = std::max<std::int64_t>(0, next_ns - now_ns());
    const timespec wait{wait_ns / 1'000'000'000, wait_ns % 1'000'000'000};
    std::array<pollfd, 2> polled{{{ways[0].from, POLLIN, 0}, {ways[1].from, POLLIN, 0}}};
    if (ppoll(polled.data(), polled.size(), &wait, nullptr) < 0 && errno != EINTR) {
      fail("ppoll");
    }
    for (Way& way : ways) {
      way.take();
      way.deliver();
    }
  }
}

// The least of what 99 of 100 do not exceed, in microseconds.
double late_us_of_99(std::vector<std::int64_t>& late_ns) {
  if (late_ns.empty()) {
    return 0.0;
  }
  const auto place = late_ns.begin() + static_cast<std::ptrdiff_t>(late_ns.size() * 99 / 100);
  std::nth_element(late_ns.begin(), place, late_ns.end());
  return static_cast<double>(*place) / 1000.0;
}

void report(std::array<Way, 2>& ways, bool is_real_time) {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  std::printf("{\"cpu_seconds\": %.3f, \"real_time\": %s, \"ways\": [",
              seconds(usage.ru_utime) + seconds(usage.ru_stime), is_real_time ? "true" : "false");
  for (Way& way : ways) {
    const LineCounts& counts = way.line.counts();
    std::printf(
        "%s{\"frames\": %lld, \"bytes\": %lld, \"dropped\": %lld, \"lost\": %lld, "
        "\"marked\": %lld, \"most_waiting_bytes\": %lld, \"late_us_p99\": %.1f}",
        &way == ways.data() ? "" : ", ", static_cast<long long>(counts.frames),
        static_cast<long long>(counts.bytes), static_cast<long long>(counts.dropped),
        static_cast<long long>(counts.lost), static_cast<long long>(counts.marked),
        static_cast<long long>(counts.most_waiting_bytes), late_us_of_99(way.late_ns));
  }
  std::printf("]}\n");
}

int run(const std::vector<std::string_view>& words) {
  const Options options = parse(words);
  // Deliveries are due within microseconds; the kernel's default slack of a timer is 50 of them.
  prctl(PR_SET_TIMERSLACK, 1UL);
  // Hardware waits for no other job of the machine. Without the right to it the report says so.
  // Nor for the programs of the box, which have the least real-time priority.
  const sched_param above{sched_get_priority_min(SCHED_RR) + 1};
  const bool is_real_time = sched_setscheduler(0, SCHED_RR, &above) == 0;
  // What started it may be killed, and nothing must be left then.
  prctl(PR_SET_PDEATHSIG, static_cast<unsigned long>(SIGTERM));
  const auto end = [](int) { is_ended = 1; };
  std::signal(SIGTERM, end);
  std::signal(SIGINT, end);
  const std::array<int, 2> taps = {open_tap(options.spaces[0], options.device),
                                   open_tap(options.spaces[1], options.device)};
  LineOptions back = options.line;
  back.seed += 1'000'003;  // Another stream: the two ways do not lose the same frames.
  std::array<Way, 2> ways = {Way{taps[0], taps[1], Line(options.line), {}, {}},
                             Way{taps[1], taps[0], Line(back), {}, {}}};
  std::printf("ready\n");
  std::fflush(stdout);
  carry(ways);
  report(ways, is_real_time);
  return 0;
}

}  // namespace
}  // namespace trainyard::box

int main(int count, char** words) {
  try {
    return trainyard::box::run({words + 1, words + count});
  } catch (const std::exception& error) {
    std::fprintf(stderr, "box-cable: %s\n", error.what());
    return 2;
  }
}
