// SPDX-License-Identifier: Apache-2.0
// A team of processes, each of which is a thread of the test.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "network/packet_parts/packet_team.h"

namespace trainyard {

class ThreadTeam {
 public:
  explicit ThreadTeam(std::uint32_t size) : boxes_(size, std::vector<Parcel>(size)) {}

  // Calls `work` on as many threads as the team has members, each with its own. Returns what they
  // return, in their order.
  template <typename Result>
  std::vector<Result> run(const std::function<Result(PacketTeam&)>& work) {
    std::vector<Result> results(boxes_.size());
    std::vector<std::jthread> threads;
    for (std::uint32_t rank = 0; rank < boxes_.size(); ++rank) {
      threads.emplace_back([&, rank] {
        Member member(*this, rank);
        results[rank] = work(member);
      });
    }
    threads.clear();
    return results;
  }
  // How often each gave something to the others, and how many bytes came to the first.
  [[nodiscard]] std::uint64_t exchanges() const { return exchanges_; }
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }

 private:
  class Member final : public PacketTeam {
   public:
    Member(ThreadTeam& team, std::uint32_t rank) : team_(team), rank_(rank) {}
    [[nodiscard]] std::uint32_t rank() const override { return rank_; }
    [[nodiscard]] std::uint32_t size() const override {
      return static_cast<std::uint32_t>(team_.boxes_.size());
    }
    void exchange(std::vector<Parcel>& parcels) override {
      team_.boxes_[rank_].swap(parcels);
      team_.wait_for_all();
      parcels.assign(size(), Parcel());
      for (std::uint32_t other = 0; other < size(); ++other) {
        if (other == rank_) {
          parcels[other].bytes() = team_.boxes_[rank_][rank_].bytes();
        } else {
          parcels[other].bytes() = team_.boxes_[other][rank_].bytes();
          team_.bytes_ += rank_ == 0 ? parcels[other].bytes().size() : 0;
        }
      }
      team_.exchanges_ += rank_ == 0 ? 1 : 0;
      team_.wait_for_all();
    }

   private:
    ThreadTeam& team_;
    std::uint32_t rank_;
  };

  // Sleeps: on a busy machine who looks again and again keeps others from what is waited for.
  void wait_for_all() {
    std::unique_lock lock(mutex_);
    const std::uint64_t round = round_;
    if (++waiting_ == boxes_.size()) {
      waiting_ = 0;
      ++round_;
      all_are_here_.notify_all();
    } else {
      all_are_here_.wait(lock, [&] { return round_ != round; });
    }
  }

  std::vector<std::vector<Parcel>> boxes_;  // By who gives, then by who gets.
  std::mutex mutex_;
  std::condition_variable all_are_here_;
  std::size_t waiting_ = 0;
  std::uint64_t round_ = 0;
  std::uint64_t exchanges_ = 0;  // Written by the first member alone.
  std::uint64_t bytes_ = 0;
};

}  // namespace trainyard
