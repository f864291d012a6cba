#include "node-runtime/collectives/node_devices.hpp"

#include "base/assert.hpp"

namespace heddle::collectives {
namespace {

/// Keeps the works that a stage begins.
class KeepingCourier final : public Courier {
 public:
  explicit KeepingCourier(UserMessages& messages) : messages_(messages) {}

  void send(Rank, Name, std::span<const std::span<const std::byte>>, std::int64_t) override {
    HEDDLE_CHECK(false, "a message of a stage that has none");
  }
  void receive(Rank, Name, std::span<const std::span<std::byte>>, std::int64_t) override {
    HEDDLE_CHECK(false, "a message of a stage that has none");
  }
  void work(p2p::DeviceWork work, std::int64_t) override {
    requests_.push_back(messages_.work(std::move(work), {}));
  }
  /// Waits for all of them, whatever becomes of the others.
  void wait() {
    std::optional<Error> failure;
    for (const p2p::Request& request : requests_) {
      try {
        static_cast<void>(messages_.wait(request));
      } catch (const Error& error) {
        if (!failure) failure = error;
      }
    }
    requests_.clear();
    if (failure) throw Error(*failure);
  }

 private:
  UserMessages& messages_;
  std::vector<p2p::Request> requests_;
};

}  // namespace

NodeDevices::NodeDevices(std::weak_ptr<UserMessages> messages)
    : messages_(std::move(messages)), user_(this->messages()->scratch().make_user()) {}

/// Counted as long as somebody has it.
std::shared_ptr<std::byte> NodeDevices::host(std::int64_t bytes) {
  auto made = host_bytes(bytes);
  host_memory_->add(bytes);
  std::byte* const first = made.get();
  return {first, [made = std::move(made), bytes, counted = host_memory_](const std::byte*) {
            counted->add(-bytes);
          }};
}

void NodeDevices::run(const std::vector<Stage>& stages) {
  const auto messages = this->messages();
  KeepingCourier courier(*messages);
  for (const Stage& stage : stages) {
    for (const Chore& chore : stage) static_cast<void>(chore.begin(courier, 0));
    courier.wait();
  }
}

}  // namespace heddle::collectives
