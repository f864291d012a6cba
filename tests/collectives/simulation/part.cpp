#include "tests/collectives/simulation/part.hpp"

#include <span>
#include <utility>

#include "base/assert.hpp"
#include "tests/collectives/simulation/cells.hpp"
#include "tests/collectives/simulation/reference.hpp"

namespace heddle::testing {
namespace {

template <class T>
class TypedPart final : public Part {
 public:
  TypedPart(const Action& action, std::int32_t rank, std::int32_t size, std::uint64_t shape,
            KeptReferences& kept, DeviceRoom devices)
      : action_(action),
        own_(rank),
        size_(size),
        shape_(shape),
        kept_(kept),
        devices_(std::move(devices)) {
    make_memory();
    options_.algorithm = action.algorithm;
    options_.fragment_bytes = action.fragment_bytes;
    options_.copies = action.copies;
    if (!action.is_wrong) return;
    if (action.form == Form::barrier || action.seed % 2 == 0) {
      options_.algorithm = "best";
    } else {
      wrong_count_ = true;
    }
  }

  std::optional<Collective> call(const Group& group) override {
    return action_.is_begun ? begin(group) : run(group);
  }

  std::string difference() const override {
    for (std::size_t k = 0; k < from_.size(); ++k) {
      const Cells<T>& input = from_[k];
      const std::string changed =
          input.difference(0, input.cells(), [&](std::int64_t i) { return input_of(k, i); });
      if (!changed.empty()) return "the input has changed: " + changed;
    }
    for (std::size_t k = 0; k < to_.size(); ++k) {
      std::string wrong = output_difference(k);
      if (!wrong.empty()) return wrong;
    }
    return "";
  }

 private:
  [[nodiscard]] bool is_root() const { return own_ == action_.root; }
  [[nodiscard]] bool is_in_place() const {
    return action_.form == Form::all_gather_in_place || action_.form == Form::all_reduce_in_place ||
           action_.form == Form::scan_in_place;
  }
  /// Scalars of what rank `from` has for rank `to`, in lists.
  [[nodiscard]] std::int64_t listed(std::int32_t from, std::int32_t to) const {
    return cells_unit *
           static_cast<std::int64_t>((static_cast<std::uint64_t>(from) * 5 +
                                      static_cast<std::uint64_t>(to) * 3 + action_.seed) %
                                     static_cast<std::uint64_t>(1 + action_.cells / cells_unit));
  }
  [[nodiscard]] T value(std::int32_t rank, std::int32_t block, std::int64_t i) const {
    return value_of<T>(action_.seed, rank, block, i);
  }
  /// In one buffer all blocks count through.
  [[nodiscard]] T input_of(std::size_t k, std::int64_t i) const {
    return value(own_,
                 action_.form == Form::scatter_list || action_.form == Form::all_to_all_list
                     ? static_cast<std::int32_t>(k)
                     : 0,
                 i);
  }

  Cells<T>& room(std::vector<Cells<T>>& list, std::int64_t cells) {
    return list.emplace_back(shape_ + list.size() + 2 * to_.size(), cells, devices_);
  }
  void give(std::int64_t cells) {
    Cells<T>& input = room(from_, cells);
    const std::size_t k = from_.size() - 1;
    for (std::int64_t i = 0; i < cells; ++i) input.set(i, input_of(k, i));
  }
  void make_memory() {
    const std::int64_t n = action_.cells;
    switch (action_.form) {
      case Form::barrier:
        return;
      case Form::broadcast:
        if (is_root()) return give(n);
        room(to_, n);
        return;
      case Form::scatter:
        if (is_root()) give(n * size_);
        room(to_, n);
        return;
      case Form::gather:
        give(n);
        if (is_root()) room(to_, n * size_);
        return;
      case Form::all_gather:
        give(n);
        room(to_, n * size_);
        return;
      case Form::all_gather_in_place: {
        Cells<T>& all = room(to_, n * size_);
        for (std::int64_t i = 0; i < n; ++i) all.set(own_ * n + i, value(own_, 0, i));
        return;
      }
      case Form::reduce:
        give(n);
        if (is_root()) room(to_, n);
        return;
      case Form::all_reduce:
      case Form::scan:
      case Form::exclusive_scan:
        give(n);
        room(to_, n);
        return;
      case Form::all_reduce_in_place:
      case Form::scan_in_place: {
        Cells<T>& all = room(to_, n);
        for (std::int64_t i = 0; i < n; ++i) all.set(i, value(own_, 0, i));
        return;
      }
      case Form::reduce_scatter:
        give(n * size_);
        room(to_, n);
        return;
      case Form::all_to_all:
        give(n * size_);
        room(to_, n * size_);
        return;
      case Form::scatter_list:
        for (std::int32_t r = 0; r < size_ && is_root(); ++r) give(listed(own_, r));
        room(to_, listed(action_.root, own_));
        return;
      case Form::gather_list:
        give(listed(own_, action_.root));
        for (std::int32_t r = 0; r < size_ && is_root(); ++r) room(to_, listed(r, own_));
        return;
      case Form::all_gather_list:
        give(listed(own_, 0));
        for (std::int32_t r = 0; r < size_; ++r) room(to_, listed(r, 0));
        return;
      case Form::all_to_all_list:
        for (std::int32_t r = 0; r < size_; ++r) give(listed(own_, r));
        for (std::int32_t r = 0; r < size_; ++r) room(to_, listed(r, own_));
        return;
      case Form::reduce_scatter_counts: {
        // Counts are of single scalars: the input's type is the scalar.
        std::int64_t all = 0;
        for (std::int32_t r = 0; r < size_; ++r) {
          counts_.push_back(listed(r, 1));
          all += counts_.back();
        }
        shape_ -= shape_ % 5;
        give(all);
        ++shape_;
        room(to_, counts_[static_cast<std::size_t>(own_)]);
        return;
      }
    }
  }

  // ---- the call --------------------------------------------------------------------------------

  Outgoing out(std::int32_t ranks = 1) const {
    Outgoing one = from_.empty() ? Outgoing{} : from_.front().out(ranks);
    if (wrong_count_) one.count = -1;
    return one;
  }
  Incoming in(std::int32_t ranks = 1) {
    Incoming one = to_.empty() ? Incoming{} : to_.front().in(ranks);
    if (wrong_count_) one.count = -1;
    return one;
  }
  /// What a broadcast has on either side.
  Incoming both() {
    if (!is_root()) return in();
    const Outgoing sent = out();
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-const-cast): it is only read
    return {const_cast<void*>(sent.memory), sent.count, sent.type};
  }
  std::vector<Outgoing> outs() const {
    std::vector<Outgoing> all;
    for (const Cells<T>& one : from_) all.push_back(one.out());
    if (wrong_count_ && !all.empty()) all.front().count = -1;
    return all;
  }
  std::vector<Incoming> ins() {
    std::vector<Incoming> all;
    for (Cells<T>& one : to_) all.push_back(one.in());
    if (wrong_count_ && !all.empty()) all.front().count = -1;
    return all;
  }

  std::optional<Collective> run(const Group& group) {
    const CollectiveOptions& o = options_;
    const ReduceOperation by = operation_of(action_);
    const std::int32_t root = action_.root;
    switch (action_.form) {
      case Form::barrier:
        group.barrier(o);
        break;
      case Form::broadcast:
        group.broadcast(both(), root, o);
        break;
      case Form::scatter:
        group.scatter(out(size_), in(), root, o);
        break;
      case Form::gather:
        group.gather(out(), in(size_), root, o);
        break;
      case Form::all_gather:
        group.all_gather(out(), in(size_), o);
        break;
      case Form::all_gather_in_place:
        group.all_gather(in(size_), o);
        break;
      case Form::reduce:
        group.reduce(out(), in(), by, root, o);
        break;
      case Form::all_reduce:
        group.all_reduce(out(), in(), by, o);
        break;
      case Form::all_reduce_in_place:
        group.all_reduce(in(), by, o);
        break;
      case Form::reduce_scatter:
        group.reduce_scatter(out(size_), in(), by, o);
        break;
      case Form::all_to_all:
        group.all_to_all(out(size_), in(size_), o);
        break;
      case Form::scan:
        group.scan(out(), in(), by, o);
        break;
      case Form::scan_in_place:
        group.scan(in(), by, o);
        break;
      case Form::exclusive_scan:
        group.exclusive_scan(out(), in(), by, o);
        break;
      case Form::scatter_list:
        group.scatter(outs(), in(), root, o);
        break;
      case Form::gather_list:
        group.gather(out(), ins(), root, o);
        break;
      case Form::all_gather_list:
        group.all_gather(out(), ins(), o);
        break;
      case Form::all_to_all_list:
        group.all_to_all(outs(), ins(), o);
        break;
      case Form::reduce_scatter_counts:
        group.reduce_scatter(out(), in(), counts_, by, o);
        break;
    }
    return std::nullopt;
  }

  Collective begin(const Group& group) {
    const CollectiveOptions& o = options_;
    const ReduceOperation by = operation_of(action_);
    const std::int32_t root = action_.root;
    switch (action_.form) {
      case Form::barrier:
        break;
      case Form::broadcast:
        return group.begin_broadcast(both(), root, o);
      case Form::scatter:
        return group.begin_scatter(out(size_), in(), root, o);
      case Form::gather:
        return group.begin_gather(out(), in(size_), root, o);
      case Form::all_gather:
        return group.begin_all_gather(out(), in(size_), o);
      case Form::all_gather_in_place:
        return group.begin_all_gather(in(size_), o);
      case Form::reduce:
        return group.begin_reduce(out(), in(), by, root, o);
      case Form::all_reduce:
        return group.begin_all_reduce(out(), in(), by, o);
      case Form::all_reduce_in_place:
        return group.begin_all_reduce(in(), by, o);
      case Form::reduce_scatter:
        return group.begin_reduce_scatter(out(size_), in(), by, o);
      case Form::all_to_all:
        return group.begin_all_to_all(out(size_), in(size_), o);
      case Form::scan:
        return group.begin_scan(out(), in(), by, o);
      case Form::scan_in_place:
        return group.begin_scan(in(), by, o);
      case Form::exclusive_scan:
        return group.begin_exclusive_scan(out(), in(), by, o);
      case Form::scatter_list:
        return group.begin_scatter(outs(), in(), root, o);
      case Form::gather_list:
        return group.begin_gather(out(), ins(), root, o);
      case Form::all_gather_list:
        return group.begin_all_gather(out(), ins(), o);
      case Form::all_to_all_list:
        return group.begin_all_to_all(outs(), ins(), o);
      case Form::reduce_scatter_counts:
        return group.begin_reduce_scatter(out(), in(), counts_, by, o);
    }
    return group.begin_barrier(o);
  }

  // ---- what must be there ----------------------------------------------------------------------

  /// Of the first `end` ranks.
  [[nodiscard]] const std::vector<T>& reduced(std::int32_t end) const {
    std::unique_ptr<References>& kept = kept_[action_.number];
    if (kept == nullptr) kept = std::make_unique<Reductions<T>>();
    std::int64_t cells = action_.cells;
    if (action_.form == Form::reduce_scatter) cells *= size_;
    if (!counts_.empty()) {
      cells = 0;
      for (const std::int64_t count : counts_) cells += count;
    }
    return dynamic_cast<Reductions<T>&>(*kept).up_to(
        end, action_.operation, [&](std::int32_t rank) {
          std::vector<T> input(static_cast<std::size_t>(cells));
          for (std::int64_t i = 0; i < cells; ++i) {
            input[static_cast<std::size_t>(i)] = value(rank, 0, i);
          }
          return input;
        });
  }
  [[nodiscard]] std::string compare(std::size_t k, std::span<const T> expected) const {
    return to_[k].difference(0, to_[k].cells(),
                             [&](std::int64_t i) { return expected[static_cast<std::size_t>(i)]; });
  }

  [[nodiscard]] std::string output_difference(std::size_t k) const {
    const Cells<T>& output = to_[k];
    const std::int64_t n = action_.cells;
    const auto from = static_cast<std::int32_t>(k);
    const auto own = static_cast<std::size_t>(own_);
    const auto all = [&](const auto& expected) {
      return output.difference(0, output.cells(), expected);
    };
    switch (action_.form) {
      case Form::barrier:
        return "";
      case Form::broadcast:
        return all([&](std::int64_t i) { return value(action_.root, 0, i); });
      case Form::scatter:
        return all([&](std::int64_t i) { return value(action_.root, 0, own_ * n + i); });
      case Form::gather:
      case Form::all_gather:
      case Form::all_gather_in_place:
        return all(
            [&](std::int64_t i) { return value(static_cast<std::int32_t>(i / n), 0, i % n); });
      case Form::all_to_all:
        return all([&](std::int64_t i) {
          return value(static_cast<std::int32_t>(i / n), 0, own_ * n + i % n);
        });
      case Form::reduce:
      case Form::all_reduce:
      case Form::all_reduce_in_place:
        return compare(k, reduced(size_));
      case Form::scan:
      case Form::scan_in_place:
        return compare(k, reduced(own_ + 1));
      case Form::exclusive_scan:
        if (own_ > 0) return compare(k, reduced(own_));
        return output.difference(0, 0, [](std::int64_t) { return T{}; });
      case Form::reduce_scatter:
        return compare(k, std::span(reduced(size_)).subspan(own * static_cast<std::size_t>(n)));
      case Form::scatter_list:
        return all([&](std::int64_t i) { return value(action_.root, own_, i); });
      case Form::gather_list:
      case Form::all_gather_list:
        return all([&](std::int64_t i) { return value(from, 0, i); });
      case Form::all_to_all_list:
        return all([&](std::int64_t i) { return value(from, own_, i); });
      case Form::reduce_scatter_counts: {
        std::int64_t begin = 0;
        for (std::size_t r = 0; r < own; ++r) begin += counts_[r];
        return compare(k, std::span(reduced(size_)).subspan(static_cast<std::size_t>(begin)));
      }
    }
    return "";
  }

  const Action action_;
  const std::int32_t own_;
  const std::int32_t size_;
  std::uint64_t shape_;
  KeptReferences& kept_;
  const DeviceRoom devices_;
  CollectiveOptions options_;
  bool wrong_count_ = false;
  std::vector<Cells<T>> from_;
  std::vector<Cells<T>> to_;
  std::vector<std::int64_t> counts_;
};

}  // namespace

std::unique_ptr<Part> make_part(const Action& action, std::int32_t rank, std::int32_t size,
                                std::uint64_t shape, KeptReferences& kept, DeviceRoom devices) {
  switch (action.scalar) {
    case Scalar::float64:
      return std::make_unique<TypedPart<double>>(action, rank, size, shape, kept,
                                                 std::move(devices));
    case Scalar::float32:
      return std::make_unique<TypedPart<float>>(action, rank, size, shape, kept,
                                                std::move(devices));
    case Scalar::int32:
      return std::make_unique<TypedPart<std::int32_t>>(action, rank, size, shape, kept,
                                                       std::move(devices));
    case Scalar::uint8:
      return std::make_unique<TypedPart<std::uint8_t>>(action, rank, size, shape, kept,
                                                       std::move(devices));
    default:
      break;
  }
  HEDDLE_CHECK(false, "no part of {}", name_of(action.scalar));
  return nullptr;
}

}  // namespace heddle::testing
