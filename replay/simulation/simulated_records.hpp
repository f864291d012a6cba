#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace heddle::replay {

/// Records of ongoing transfers, by a number that events refer to.
template <class Record>
class Records {
 public:
  std::int32_t add(const Record& record) {
    if (free_.empty()) {
      all_.push_back(record);
      return static_cast<std::int32_t>(all_.size()) - 1;
    }
    const std::int32_t number = free_.back();
    free_.pop_back();
    all_[static_cast<std::size_t>(number)] = record;
    return number;
  }
  [[nodiscard]] Record& at(std::int32_t number) { return all_[static_cast<std::size_t>(number)]; }
  [[nodiscard]] const Record& at(std::int32_t number) const {
    return all_[static_cast<std::size_t>(number)];
  }
  void remove(std::int32_t number) { free_.push_back(number); }

 private:
  std::vector<Record> all_;
  std::vector<std::int32_t> free_;
};

}  // namespace heddle::replay
