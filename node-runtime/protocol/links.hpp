#pragma once

namespace heddle::protocol {

/// Intrusive circular doubly linked list; a node linked to itself is in no list.
struct Links {
  Links* previous = this;
  Links* next = this;

  Links() = default;
  Links(const Links&) = delete;
  Links& operator=(const Links&) = delete;
  Links(Links&&) = delete;
  Links& operator=(Links&&) = delete;
  ~Links() = default;

  [[nodiscard]] bool linked() const { return next != this; }
  void unlink() {
    previous->next = next;
    next->previous = previous;
    previous = next = this;
  }
  void insert_before(Links& position) {
    previous = position.previous;
    next = &position;
    previous->next = this;
    position.previous = this;
  }
  /// Moves all members of the list headed by `other` to the end of this list.
  void take_all(Links& other) {
    if (!other.linked()) return;
    other.next->previous = previous;
    previous->next = other.next;
    other.previous->next = this;
    previous = other.previous;
    other.previous = other.next = &other;
  }
};

/// Links with a pointer to their record.
struct OwnedLinks : Links {
  void* owner;
  explicit OwnedLinks(void* o) : owner(o) {}
};

}  // namespace heddle::protocol
