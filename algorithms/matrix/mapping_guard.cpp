#include "algorithms/matrix/mapping_guard.hpp"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <mutex>
#include <sys/mman.h>
#include <unistd.h>

namespace heddle {

/// Slots are used again and never freed: the handler may walk the list at any moment.
struct MappingGuard::Slot {
  std::atomic<bool> is_taken{true};
  std::atomic<std::uintptr_t> begin{0};  ///< 0: guards nothing
  std::atomic<std::uintptr_t> end{0};
  std::atomic<bool> is_broken{false};
  Slot* next = nullptr;
};

namespace {

// A signal's handler has no other place to look: the one process-wide state beside it.
std::atomic<MappingGuard::Slot*> first_slot{nullptr};
struct sigaction action_before {};
std::once_flag installed;

/// Makes the rest of the mapping zeros. No function here is one that a signal's handler may not
/// call.
bool replace_rest(MappingGuard::Slot& slot, std::uintptr_t address, std::uintptr_t end) {
  const auto page_bytes = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const std::uintptr_t page = address / page_bytes * page_bytes;
  // First: who reads the zeros finds it.
  slot.is_broken.store(true, std::memory_order_release);
  void* const zeros = ::mmap(reinterpret_cast<void*>(page), end - page, PROT_READ,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  return zeros != MAP_FAILED;
}

void handle_bus_error(int signal, siginfo_t* info, void* /*context*/) {
  const int error = errno;
  const auto address = reinterpret_cast<std::uintptr_t>(info->si_addr);
  // Acquire: of the push in slot_for(); the slot is whole.
  MappingGuard::Slot* slot = first_slot.load(std::memory_order_acquire);
  for (; slot != nullptr; slot = slot->next) {
    // Acquire: of the constructor's release; `end` is of the same mapping.
    const std::uintptr_t begin = slot->begin.load(std::memory_order_acquire);
    const std::uintptr_t end = slot->end.load(std::memory_order_relaxed);
    if (begin == 0 || address < begin || address >= end) continue;
    if (!replace_rest(*slot, address, end)) break;
    errno = error;
    return;
  }
  // Not for a guard: the access is made again, and gets what it got without guards.
  ::sigaction(signal, &action_before, nullptr);
  if (info->si_code <= 0) ::raise(signal);  // sent by a process: nothing is made again
  errno = error;
}

void install() {
  struct sigaction action {};
  action.sa_sigaction = handle_bus_error;
  action.sa_flags = SA_SIGINFO;
  ::sigemptyset(&action.sa_mask);
  ::sigaction(SIGBUS, &action, &action_before);
}

MappingGuard::Slot* take_slot() {
  // Acquire: of the push below.
  for (auto* slot = first_slot.load(std::memory_order_acquire); slot != nullptr;
       slot = slot->next) {
    bool is_taken = false;
    // Acquire: of the destructor's release; the last mapping's end comes before this one's begin.
    if (slot->is_taken.compare_exchange_strong(is_taken, true, std::memory_order_acquire)) {
      return slot;
    }
  }
  auto* slot = new MappingGuard::Slot;
  slot->next = first_slot.load(std::memory_order_relaxed);
  // Release: the walks' acquire sees the slot whole.
  while (!first_slot.compare_exchange_weak(slot->next, slot, std::memory_order_release,
                                           std::memory_order_relaxed)) {
  }
  return slot;
}

}  // namespace

MappingGuard::MappingGuard(void* begin, std::size_t bytes) : slot_(take_slot()) {
  std::call_once(installed, install);
  const auto address = reinterpret_cast<std::uintptr_t>(begin);
  slot_->is_broken.store(false, std::memory_order_relaxed);
  slot_->end.store(address + bytes, std::memory_order_relaxed);
  // Release: to the handler's acquire.
  slot_->begin.store(address, std::memory_order_release);
}

MappingGuard::~MappingGuard() {
  slot_->begin.store(0, std::memory_order_relaxed);
  // Release: to the acquire of take_slot().
  slot_->is_taken.store(false, std::memory_order_release);
}

bool MappingGuard::is_broken() const {
  // Acquire: of the release in replace_rest(), where another thread has met the missing page.
  return slot_->is_broken.load(std::memory_order_acquire);
}

}  // namespace heddle
