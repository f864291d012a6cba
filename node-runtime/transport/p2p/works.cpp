#include "node-runtime/transport/p2p/works.hpp"

#include <exception>
#include <fmt/core.h>
#include <utility>

#include "base/process_limits.hpp"

namespace heddle::p2p {

void Works::start(std::shared_ptr<Work> work) {
  Work& started = *work;
  try {
    if (started.referral != nullptr) {
      refer(started);
      return end(work, nullptr);
    }
    under_way_.emplace(started.id, work);
    queue(started);
  } catch (const std::exception& error) {
    under_way_.erase(started.id);
    const Error why = as_error(error);
    end(work, &why);
  }
}

void Works::refer(Work& work) {
  Referral& referral = *work.referral;
  for (const NodeId node : referral.nodes) {
    referral.reference = neighbours_.refer(referral.memory, node);
    if (!referral.reference) return;
  }
}

void Works::queue(Work& work) {
  const DeviceWork& device = *work.device;
  const OperationId id{-work.id};
  if (device.awaits != nullptr) return lanes_.watch(device.lane, device.awaits, id);
  std::vector<Spot> remote;
  remote.reserve(device.remote.size());
  try {
    for (const RemoteMemory& one : device.remote) {
      std::shared_ptr<const Mappings::Use> use;
      remote.push_back(neighbours_.map(one.node, device.lane, one.memory, use));
      if (use != nullptr) work.mappings.push_back(std::move(use));
    }
  } catch (const Error& error) {
    if (device.refusal == nullptr) throw;
    *device.refusal = error.what();
    const std::shared_ptr<Work> ended = under_way_.extract(work.id);
    return end(ended, nullptr);
  }
  lanes_.run(
      device.lane,
      [&](Stream& stream, DevicePacker& packer) {
        device.queue({stream, packer, remote});
      },
      id);
}

void Works::ended(OperationId id, const std::optional<std::string>& failure) {
  const std::shared_ptr<Work> work = under_way_.extract(-id.value());
  if (!failure) return end(work, nullptr);
  const Error why(ErrorCode::internal, *failure);
  end(work, &why);
}

bool Works::cancel(std::int64_t id) {
  std::shared_ptr<Work>* const found = under_way_.find(id);
  if (found == nullptr) return false;
  const std::shared_ptr<Work> work = *found;
  if (work->device->awaits == nullptr) return true;
  lanes_.forget(work->device->lane, OperationId{-id});
  under_way_.erase(id);
  end(work, nullptr, true);
  return true;
}

void Works::abandon(const Error& why) {
  std::vector<std::shared_ptr<Work>> left;
  under_way_.for_each(
      [&](std::int64_t, const std::shared_ptr<Work>& work) { left.push_back(work); });
  for (const std::shared_ptr<Work>& work : left) {
    under_way_.erase(work->id);
    end(work, &why);
  }
}

void Works::end(const std::shared_ptr<Work>& work, const Error* failure, bool is_cancelled) {
  work->mappings.clear();
  // What it was made of may hold memory that is to be given back before the request shows its end.
  if (work->device) work->device->queue = nullptr;
  if (failure != nullptr) {
    work->fail(*failure);
  } else {
    work->complete({own_, 0, 0, is_cancelled});
  }
  requests_.end(work);
}

}  // namespace heddle::p2p
