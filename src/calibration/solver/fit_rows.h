// SPDX-License-Identifier: Apache-2.0
// The rows that a fit looks at, and what is known of their times without asking the model.
//
// A time that comes from waiting and working is a sum over the longest of many chains: with u the
// times that things take (constants that are times, and one over those that are rates or shares) it
// is the largest of many sums c + sum_k n_k u_k. So it is convex in u, and each tangent is a lower
// bound that is exact where it was taken. What is known of a row is the largest of its tangents.
// Where the model is not like that (units that swap places at a port), a tangent that is above the
// time of another known point counts only nearest to its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "calibration/solver/robust_fit.h"

namespace trainyard {

class FitRows {
 public:
  FitRows(FitModel& model, const std::vector<FitParameter>& parameters,
          const std::vector<FitTable>& tables, const TaskRunner& run_tasks);

  // Finds out which parameters change a row: at `point`, each is made four times slower. Only those
  // of a table are tried that change one of four of its rows, groups of them at a time.
  void find_influences(const std::vector<double>& point);

  // Asks the model for the rows of these tables at `point`, unless it was asked close to it, and
  // takes a tangent where what was known is off by more than half a per cent. Returns how many.
  std::size_t learn(const std::vector<double>& point, std::span<const std::size_t> tables);
  // The same for all rows, also those that it was asked for close by.
  void learn_exactly(const std::vector<double>& point);

  // ln of the time of a row, and its derivatives by `parameters`, from what is known.
  [[nodiscard]] double log_time(std::size_t row, const std::vector<double>& point,
                                std::vector<double>& derivatives) const;

  struct Row {
    std::size_t table = 0;
    std::size_t index = 0;  // Within its table.
    double log_measured = 0.0;
    // Weight of the row; those of a table add up to one.
    double weight = 0.0;
    std::vector<std::uint32_t> parameters = {};  // Parameters that change it, in order.
  };
  [[nodiscard]] const std::vector<Row>& rows() const { return rows_; }
  // Returns the numbers of the rows of these tables.
  [[nodiscard]] std::vector<std::size_t> rows_of(std::span<const std::size_t> tables) const;

  // keep() keeps what is known so far; forget() drops what came after.
  void keep();
  void forget();
  // Knows from now on what others of the same rows kept.
  void know_what(const FitRows& others_kept);

 private:
  // Slopes by the entries of `parameters` of the row.
  struct Tangent {
    std::vector<double> at;      // ln(constant).
    double time = 0.0;           // In seconds.
    std::vector<double> shares;  // d time / d ln u.
    bool only_near = false;      // Above the time of another point.
  };
  struct TableNews {  // Knowledge gained of a table at a point.
    std::size_t table = 0;
    std::vector<std::size_t> asked;  // Rows within the table.
    std::vector<std::size_t> open;   // Rows of `asked` that need slopes.
    std::vector<Tangent> tangents;   // Tangents of `asked`.
  };
  // A run of parameters that are next to each other and share the front of their names.
  struct Group {
    std::size_t first = 0;
    std::size_t last = 0;  // Behind the last.
    std::vector<std::size_t> below;
  };

  std::size_t add_group(std::size_t first, std::size_t last, std::size_t depth);
  void find_changing(std::size_t table, std::size_t group, const std::vector<std::size_t>& rows,
                     const std::vector<double>& before, std::vector<std::size_t>& changing);
  [[nodiscard]] double time_of(const Row& row, const Tangent& tangent,
                               const std::vector<double>& point) const;
  [[nodiscard]] double distance(const Row& row, const Tangent& tangent,
                                const std::vector<double>& point) const;
  // The tangent that says the time of a row; kNowhere without any.
  [[nodiscard]] std::size_t tangent_for(std::size_t row, const std::vector<double>& point) const;
  [[nodiscard]] bool is_known(std::size_t row, const std::vector<double>& point, double near) const;
  std::size_t learn(const std::vector<double>& point, std::span<const std::size_t> tables,
                    double near);
  void add(std::size_t row, Tangent tangent);
  void ask(const std::vector<double>& point, TableNews& news);
  void take_slopes(const std::vector<double>& point, const std::vector<std::size_t>& number_of,
                   TableNews& news);
  [[nodiscard]] double step(std::size_t parameter, double value) const;

  FitModel& model_;
  const std::vector<FitParameter>& parameters_;
  const TaskRunner& run_tasks_;
  std::vector<Group> groups_;
  std::vector<Row> rows_;
  std::vector<std::vector<Tangent>> known_;  // Indexed by row.
  std::vector<std::vector<Tangent>> kept_;
  std::vector<std::size_t> first_rows_;  // The first row of each table, and the number of all.
};

}  // namespace trainyard
