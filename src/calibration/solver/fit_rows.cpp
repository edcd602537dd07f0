// SPDX-License-Identifier: Apache-2.0
#include "calibration/solver/fit_rows.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string_view>

#include "sim/check.h"

namespace trainyard {
namespace {

// Points that differ by no more than this in any ln(constant) are the same for a row.
constexpr double kNear = 0.08;
// Limit of an error in ln(time), without a new tangent.
constexpr double kOff = 0.005;
// The step of a derivative. Times are not smooth: units that meet at a port may swap places, which
// a step of this size looks past.
constexpr double kStep = 0.04;
constexpr std::size_t kNowhere = static_cast<std::size_t>(-1);
// A time never falls below this part of a tangent's own.
constexpr double kMinPart = 0.01;
const double kSlower = std::log(4.0);
// A change of a time that is one, in ln.
constexpr double kChange = 1e-5;

// The first `depth` parts of a name.
std::string_view front(std::string_view name, std::size_t depth) {
  std::size_t end = 0;
  for (std::size_t part = 0; part < depth && end < name.size(); ++part) {
    end = std::min(name.find('.', end == 0 ? 0 : end + 1), name.size());
  }
  return name.substr(0, end);
}

double clamped(const FitParameter& parameter, double value) {
  return std::clamp(value, parameter.min, parameter.max);
}

}  // namespace

FitRows::FitRows(FitModel& model, const std::vector<FitParameter>& parameters,
                 const std::vector<FitTable>& tables, const TaskRunner& run_tasks)
    : model_(model), parameters_(parameters), run_tasks_(run_tasks) {
  for (std::size_t table = 0; table < tables.size(); ++table) {
    first_rows_.push_back(rows_.size());
    double sum = 0.0;
    for (const FitTable::Row& row : tables[table].rows) {
      sum += row.stands_for;
    }
    for (std::size_t index = 0; index < tables[table].rows.size(); ++index) {
      const FitTable::Row& row = tables[table].rows[index];
      rows_.push_back({.table = table,
                       .index = index,
                       .log_measured = row.log_measured,
                       .weight = row.stands_for / sum});
    }
  }
  first_rows_.push_back(rows_.size());
  known_.resize(rows_.size());
  static_cast<void>(add_group(0, parameters_.size(), 0));
}

std::size_t FitRows::add_group(std::size_t first, std::size_t last, std::size_t depth) {
  const std::size_t number = groups_.size();
  groups_.push_back({.first = first, .last = last, .below = {}});
  if (last - first < 2) {
    return number;
  }
  const auto part = [&](std::size_t parameter) {
    return front(parameters_[parameter].name, depth);
  };
  while (part(first) == part(last - 1)) {
    CHECK(part(first) != parameters_[first].name, "two parameters of a fit have the same name");
    ++depth;
  }
  for (std::size_t begin = first; begin < last;) {
    std::size_t end = begin + 1;
    while (end < last && part(end) == part(begin)) {
      ++end;
    }
    const std::size_t below = add_group(begin, end, depth + 1);
    groups_[number].below.push_back(below);
    begin = end;
  }
  return number;
}

void FitRows::find_influences(const std::vector<double>& point) {
  std::vector<std::vector<double>> points{point};
  for (const Group& group : groups_) {
    points.push_back(point);
    for (std::size_t k = group.first; k < group.last; ++k) {
      points.back()[k] = clamped(parameters_[k], point[k] + kSlower * parameters_[k].slower);
    }
  }
  model_.set_points(points);
  run_tasks_(first_rows_.size() - 1, [&](std::size_t table) {
    const std::size_t first = first_rows_[table];
    const std::size_t count = first_rows_[table + 1] - first;
    std::vector<std::size_t> some;
    for (std::size_t quarter = 0; quarter < 4; ++quarter) {
      const std::size_t index = quarter * count / 4;
      if (some.empty() || some.back() != index) {
        some.push_back(index);
      }
    }
    std::vector<double> before(some.size());
    model_.log_times(table, 0, some, before);
    std::vector<std::size_t> changing;
    for (const std::size_t group : groups_.front().below) {
      find_changing(table, group, some, before, changing);
    }
    std::vector<std::size_t> all(count);
    std::iota(all.begin(), all.end(), std::size_t{0});
    before.resize(count);
    model_.log_times(table, 0, all, before);
    std::vector<double> after(count);
    for (const std::size_t group : changing) {
      model_.log_times(table, group + 1, all, after);
      for (std::size_t index = 0; index < count; ++index) {
        if (std::abs(after[index] - before[index]) > kChange) {
          rows_[first + index].parameters.push_back(
              static_cast<std::uint32_t>(groups_[group].first));
        }
      }
    }
  });
}

// The single parameters below a group that change any of these rows. Groups come in order.
void FitRows::find_changing(std::size_t table, std::size_t group,
                            const std::vector<std::size_t>& rows, const std::vector<double>& before,
                            std::vector<std::size_t>& changing) {
  std::vector<double> after(rows.size());
  model_.log_times(table, group + 1, rows, after);
  bool changed = false;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    changed = changed || std::abs(after[i] - before[i]) > kChange;
  }
  if (changed && groups_[group].below.empty()) {
    changing.push_back(group);
  }
  for (std::size_t i = 0; changed && i < groups_[group].below.size(); ++i) {
    find_changing(table, groups_[group].below[i], rows, before, changing);
  }
}

// Towards what takes longer, if there is room.
double FitRows::step(std::size_t parameter, double value) const {
  const FitParameter& one = parameters_[parameter];
  const double wanted = value + kStep * one.slower;
  return wanted < one.min || wanted > one.max ? -kStep * one.slower : kStep * one.slower;
}

double FitRows::distance(const Row& row, const Tangent& tangent,
                         const std::vector<double>& point) const {
  double max = 0.0;
  for (std::size_t i = 0; i < row.parameters.size(); ++i) {
    max = std::max(max, std::abs(point[row.parameters[i]] - tangent.at[i]));
  }
  return max;
}

double FitRows::time_of(const Row& row, const Tangent& tangent,
                        const std::vector<double>& point) const {
  double time = tangent.time;
  for (std::size_t i = 0; i < row.parameters.size(); ++i) {
    const std::uint32_t k = row.parameters[i];
    const double change = parameters_[k].slower * (point[k] - tangent.at[i]);
    time += tangent.shares[i] * std::expm1(change);
  }
  return std::max(time, tangent.time * kMinPart);
}

std::size_t FitRows::tangent_for(std::size_t number, const std::vector<double>& point) const {
  const Row& row = rows_[number];
  const std::vector<Tangent>& known = known_[number];
  std::size_t nearest = kNowhere;
  double min = std::numeric_limits<double>::max();
  for (std::size_t i = 0; i < known.size(); ++i) {
    const double far = distance(row, known[i], point);
    if (far < min) {
      min = far;
      nearest = i;
    }
  }
  if (nearest == kNowhere || min <= kNear / 4) {
    return nearest;
  }
  std::size_t best = nearest;
  double time = time_of(row, known[nearest], point);
  for (std::size_t i = 0; i < known.size(); ++i) {
    const double other = known[i].only_near ? 0.0 : time_of(row, known[i], point);
    if (other > time) {
      time = other;
      best = i;
    }
  }
  return best;
}

double FitRows::log_time(std::size_t number, const std::vector<double>& point,
                         std::vector<double>& derivatives) const {
  const Row& row = rows_[number];
  const std::size_t which = tangent_for(number, point);
  CHECK(which != kNowhere, "a row of which nothing is known");
  const Tangent& tangent = known_[number][which];
  const double time = time_of(row, tangent, point);
  derivatives.resize(row.parameters.size());
  for (std::size_t i = 0; i < row.parameters.size(); ++i) {
    const std::uint32_t k = row.parameters[i];
    const double slower = parameters_[k].slower;
    derivatives[i] =
        slower * tangent.shares[i] * std::exp(slower * (point[k] - tangent.at[i])) / time;
  }
  return std::log(time);
}

bool FitRows::is_known(std::size_t number, const std::vector<double>& point, double near) const {
  const std::vector<Tangent>& known = known_[number];
  return std::any_of(known.begin(), known.end(), [&](const Tangent& tangent) {
    return distance(rows_[number], tangent, point) <= near;
  });
}

void FitRows::add(std::size_t number, Tangent tangent) {
  std::vector<Tangent>& known = known_[number];
  const Row& row = rows_[number];
  std::vector<double> here(parameters_.size());
  const auto stands_above = [&](const Tangent& one, const Tangent& other) {
    for (std::size_t i = 0; i < row.parameters.size(); ++i) {
      here[row.parameters[i]] = other.at[i];
    }
    return time_of(row, one, here) > other.time * (1.0 + 2.0 * kOff);
  };
  for (Tangent& other : known) {
    other.only_near = other.only_near || stands_above(other, tangent);
    tangent.only_near = tangent.only_near || stands_above(tangent, other);
  }
  known.push_back(std::move(tangent));
}

void FitRows::ask(const std::vector<double>& point, TableNews& news) {
  const std::size_t first = first_rows_[news.table];
  std::vector<double> times(news.asked.size());
  model_.log_times(news.table, 0, news.asked, times);
  std::vector<double> derivatives;
  for (std::size_t i = 0; i < news.asked.size(); ++i) {
    const std::size_t number = first + news.asked[i];
    Tangent& tangent = news.tangents.emplace_back();
    tangent.time = std::exp(times[i]);
    for (const std::uint32_t k : rows_[number].parameters) {
      tangent.at.push_back(point[k]);
    }
    if (known_[number].empty() ||
        std::abs(log_time(number, point, derivatives) - times[i]) > kOff) {
      news.open.push_back(i);
      continue;
    }
    // The known tangent leads here: its slopes are right.
    for (std::size_t p = 0; p < derivatives.size(); ++p) {
      tangent.shares.push_back(derivatives[p] * tangent.time *
                               parameters_[rows_[number].parameters[p]].slower);
    }
  }
}

// `number_of`: of the point with a step in each parameter.
void FitRows::take_slopes(const std::vector<double>& point,
                          const std::vector<std::size_t>& number_of, TableNews& news) {
  const std::size_t first = first_rows_[news.table];
  for (std::uint32_t k = 0; k < parameters_.size(); ++k) {
    std::vector<std::size_t> wanted;
    std::vector<std::size_t> places;
    for (const std::size_t i : news.open) {
      const std::vector<std::uint32_t>& own = rows_[first + news.asked[i]].parameters;
      if (std::binary_search(own.begin(), own.end(), k)) {
        wanted.push_back(news.asked[i]);
        places.push_back(i);
      }
    }
    if (wanted.empty()) {
      continue;
    }
    std::vector<double> stepped(wanted.size());
    model_.log_times(news.table, number_of[k], wanted, stepped);
    const double change = std::expm1(step(k, point[k]) * parameters_[k].slower);
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      Tangent& tangent = news.tangents[places[i]];
      tangent.shares.push_back((std::exp(stepped[i]) - tangent.time) / change);
    }
  }
}

std::size_t FitRows::learn(const std::vector<double>& point, std::span<const std::size_t> tables) {
  return learn(point, tables, kNear);
}

void FitRows::learn_exactly(const std::vector<double>& point) {
  std::vector<std::size_t> all(first_rows_.size() - 1);
  std::iota(all.begin(), all.end(), std::size_t{0});
  static_cast<void>(learn(point, all, 0.0));
}

std::size_t FitRows::learn(const std::vector<double>& point, std::span<const std::size_t> tables,
                           double near) {
  std::vector<TableNews> all;
  for (const std::size_t table : tables) {
    TableNews news{.table = table, .asked = {}, .open = {}, .tangents = {}};
    for (std::size_t row = first_rows_[table]; row < first_rows_[table + 1]; ++row) {
      if (!is_known(row, point, near)) {
        news.asked.push_back(row - first_rows_[table]);
      }
    }
    if (!news.asked.empty()) {
      all.push_back(std::move(news));
    }
  }
  model_.set_points(std::span(&point, 1));
  run_tasks_(all.size(), [&](std::size_t turn) { ask(point, all[turn]); });
  std::vector<std::vector<double>> points;
  std::vector<std::size_t> number_of(parameters_.size(), kNowhere);
  std::size_t learned = 0;
  for (const TableNews& news : all) {
    learned += news.open.size();
    for (const std::size_t i : news.open) {
      for (const std::uint32_t k : rows_[first_rows_[news.table] + news.asked[i]].parameters) {
        if (number_of[k] == kNowhere) {
          number_of[k] = points.size();
          points.push_back(point);
          points.back()[k] += step(k, point[k]);
        }
      }
    }
  }
  model_.set_points(points);
  run_tasks_(all.size(), [&](std::size_t turn) { take_slopes(point, number_of, all[turn]); });
  for (TableNews& news : all) {
    for (std::size_t i = 0; i < news.asked.size(); ++i) {
      add(first_rows_[news.table] + news.asked[i], std::move(news.tangents[i]));
    }
  }
  return learned;
}

std::vector<std::size_t> FitRows::rows_of(std::span<const std::size_t> tables) const {
  std::vector<std::size_t> numbers;
  for (const std::size_t table : tables) {
    for (std::size_t row = first_rows_[table]; row < first_rows_[table + 1]; ++row) {
      numbers.push_back(row);
    }
  }
  return numbers;
}

void FitRows::keep() {
  kept_ = known_;
}

void FitRows::forget() {
  known_ = kept_;
}

void FitRows::know_what(const FitRows& others_kept) {
  rows_ = others_kept.rows_;
  kept_ = others_kept.kept_;
  forget();
}

}  // namespace trainyard
