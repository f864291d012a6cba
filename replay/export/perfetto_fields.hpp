#pragma once

#include <cstdint>

/// Field numbers and enumerators of Perfetto's trace format that heddle uses:
/// protos/perfetto/trace/trace_packet.proto, interned_data/ and track_event/ of
/// https://github.com/google/perfetto.
namespace heddle::replay::perfetto {

using Field = std::uint32_t;

namespace trace {
inline constexpr Field packet = 1;
}

namespace packet {
inline constexpr Field timestamp = 8;
inline constexpr Field trusted_packet_sequence_id = 10;
inline constexpr Field track_event = 11;
inline constexpr Field interned_data = 12;
inline constexpr Field sequence_flags = 13;
inline constexpr Field track_descriptor = 60;
inline constexpr std::uint64_t incremental_state_cleared = 1;
inline constexpr std::uint64_t needs_incremental_state = 2;
}  // namespace packet

namespace interned_data {
inline constexpr Field event_categories = 1;
inline constexpr Field event_names = 2;
inline constexpr Field annotation_names = 3;
inline constexpr Field annotation_texts = 29;
}  // namespace interned_data

/// Equal for EventCategory, EventName, DebugAnnotationName and InternedString.
namespace interned {
inline constexpr Field iid = 1;
inline constexpr Field text = 2;
}  // namespace interned

namespace track {
inline constexpr Field uuid = 1;
inline constexpr Field name = 2;
inline constexpr Field process = 3;
inline constexpr Field thread = 4;
inline constexpr Field parent_uuid = 5;
inline constexpr Field counter = 8;
inline constexpr Field child_ordering = 11;
inline constexpr Field sibling_order_rank = 12;
inline constexpr std::uint64_t explicit_ordering = 3;
}  // namespace track

namespace process {
inline constexpr Field pid = 1;
inline constexpr Field sort_index = 3;
inline constexpr Field name = 6;
}  // namespace process

namespace thread {
inline constexpr Field pid = 1;
inline constexpr Field tid = 2;
inline constexpr Field sort_index = 3;
inline constexpr Field name = 5;
}  // namespace thread

namespace counter {
inline constexpr Field unit = 3;
inline constexpr std::uint64_t unit_count = 2;
}  // namespace counter

namespace event {
inline constexpr Field category_iids = 3;
inline constexpr Field annotations = 4;
inline constexpr Field type = 9;
inline constexpr Field name_iid = 10;
inline constexpr Field track_uuid = 11;
inline constexpr Field counter_value = 30;
inline constexpr Field flow_ids = 47;
inline constexpr Field terminating_flow_ids = 48;
inline constexpr std::uint64_t slice_begin = 1;
inline constexpr std::uint64_t slice_end = 2;
inline constexpr std::uint64_t counter_type = 4;
}  // namespace event

namespace annotation {
inline constexpr Field name_iid = 1;
inline constexpr Field integer = 4;
inline constexpr Field text_iid = 17;
}  // namespace annotation

}  // namespace heddle::replay::perfetto
