#include "tests/support/script.hpp"

#include <algorithm>
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <stdexcept>

#include "tests/support/program.hpp"

namespace heddle::simulation {

using protocol::Access;
using protocol::BlockRef;
using protocol::CopyAction;
using protocol::InstanceKind;
using protocol::Item;
using protocol::TileId;

namespace {

PlaceId place_of(BlockRef block) {
  return PlaceId{own_pool(block)};
}

std::string at_place(PlaceId place) {
  return place == host_place ? "" : fmt::format(" at {}", place.value());
}

void expect_blocks_at_the_place_of(const protocol::Task& task) {
  for (std::uint8_t i = 0; i < task.operand_count; ++i) {
    const protocol::Operand& operand = task.operands[i];
    EXPECT_EQ(place_of(operand.block), task.place);
    const BlockRef from = operand.copy_from.valid() ? operand.copy_from : operand.block;
    EXPECT_EQ(place_of(from), task.place);
  }
}

}  // namespace

Script::~Script() {
  for (Node& node : nodes_) {
    if (node.drained < node.begun) node.protocol->abandon();  // a test may stop half-way
  }
}

TileId Script::tile(const std::string& name, std::int32_t node, std::int32_t place) {
  const TileId tile = writer_.tile(node, place);
  tile_names_[tile] = name;
  return tile;
}

TileId Script::temporary(const std::string& name, std::int32_t node, std::int32_t place) {
  const TileId tile = writer_.temporary(node, place);
  tile_names_[tile] = name;
  return tile;
}

void Script::start() {
  nodes_.resize(static_cast<std::size_t>(options_.nodes));
  for (std::size_t n = 0; n < nodes_.size(); ++n) {
    Node& node = nodes_[n];
    node.protocol = std::make_unique<protocol::Protocol>(
        protocol::Protocol::Options{NodeId{static_cast<std::int32_t>(n)}, options_.places});
    for (const SimulatedMatrix& matrix : writer_.matrices()) {
      protocol::MatrixOptions own;
      own.tile_count = static_cast<std::int32_t>(matrix.homes.size());
      own.temporary = matrix.temporary;
      own.spare_count = options_.spare_count;
      for (std::int32_t p = 0; p < options_.places; ++p) own.pools.push_back(p);
      node.protocol->add_matrix(std::move(own));
    }
  }
  begin_job();
}

void Script::begin_job() {
  if (nodes_.empty()) return start();
  protocol::JobOptions options;
  options.window = options_.window;
  for (std::int32_t p = 0; p < options_.places; ++p) {
    options.pools.push_back({job_pool_base + p, options_.blocks, options_.minimum});
  }
  for (Node& node : nodes_) {
    node.job = &node.protocol->begin_job(options);
    ++node.begun;
  }
}

Script::Node& Script::at(std::int32_t node) {
  if (nodes_.empty()) start();
  return nodes_.at(static_cast<std::size_t>(node));
}

protocol::Protocol& Script::protocol(std::int32_t node) {
  return *at(node).protocol;
}

protocol::Job& Script::job(std::int32_t node) {
  return *at(node).job;
}

// ---- events ----------------------------------------------------------------------------------

void Script::append(const std::string& task, const std::vector<Access>& accesses) {
  for (std::int32_t n = 0; n < options_.nodes; ++n) append_at(n, task, accesses);
}

void Script::append_at(std::int32_t n, const std::string& task,
                       const std::vector<Access>& accesses) {
  Node& node = at(n);
  protocol::Work work;
  work.parameters[0] = task_names_.size();
  task_names_.push_back(task);
  node.protocol->append(*node.job, work, 0, accesses, node.actions);
  collect(n);
}

void Script::announce(std::int32_t n, TileId tile, std::int32_t reader) {
  Node& node = at(n);
  node.protocol->append_alien_reader(*node.job, read(tile), NodeId{reader}, 0, node.actions);
  collect(n);
}

void Script::release(TileId tile) {
  for (std::int32_t n = 0; n < options_.nodes; ++n) {
    Node& node = at(n);
    node.protocol->release(*node.job, read(tile), node.actions);
    collect(n);
  }
}

void Script::end() {
  for (std::int32_t n = 0; n < options_.nodes; ++n) {
    Node& node = at(n);
    node.protocol->end_generation(*node.job, node.actions);
    collect(n);
  }
}

bool Script::drained() {
  return std::all_of(nodes_.begin(), nodes_.end(),
                     [](const Node& node) { return node.drained == node.begun; });
}

// ---- actions as text -------------------------------------------------------------------------

std::string Script::name(TileId tile, Version number) const {
  return fmt::format("{}.{}", name(tile), number.value());
}

void Script::collect(std::int32_t n) {
  Node& node = at(n);
  for (const BlockRef block : node.actions.freed) node.freed.push_back(pool_of(block));
  for (protocol::Task* task : node.actions.ready) {
    expect_blocks_at_the_place_of(*task);
    node.pending.push_back({"run " + task_names_.at(task->work.parameters[0]),
                            [this, n, task] {
                              at(n).protocol->task_finished(*task, at(n).actions);
                              collect(n);
                            },
                            task});
  }
  collect_copies(n);
  collect_messages(n);
  node.drained += node.actions.drained.size();
  node.actions.clear();
  EXPECT_TRUE(node.protocol->is_valid());
}

void Script::collect_copies(std::int32_t n) {
  Node& node = at(n);
  for (const CopyAction& copy : node.actions.copies) {
    EXPECT_EQ(place_of(copy.from), copy.from_place);
    EXPECT_EQ(place_of(copy.to), copy.to_place);
    const char* verb = copy.kind == CopyAction::Kind::replica ? "copy" : "sink";
    node.pending.push_back({fmt::format("{} {} {}>{}", verb, name(copy.tile, copy.number),
                                        copy.from_place.value(), copy.to_place.value()),
                            [this, n, copy] {
                              at(n).protocol->copy_finished(copy, at(n).actions);
                              collect(n);
                            }});
  }
}

void Script::collect_messages(std::int32_t n) {
  Node& node = at(n);
  for (const protocol::AskAction& ask : node.actions.asks) {
    if (!options_.asks) break;
    const std::int32_t from = ask.from.value();
    node.pending.push_back(
        {fmt::format("ask {} of {}", name(ask.tile, ask.number), from), [this, n, ask, from] {
           at(from).protocol->ask_arrived(ask.job, ask.tile, ask.number, NodeId{n},
                                          at(from).actions);
           collect(from);
         }});
  }
  for (const protocol::OfferAction& offer : node.actions.offers) {
    const std::int32_t to = offer.to.value();
    node.pending.push_back(
        {fmt::format("offer {} to {}", name(offer.tile, offer.number), to), [this, n, offer, to] {
           at(to).protocol->offer_arrived(offer.job, offer.tile, offer.number, NodeId{n},
                                          at(to).actions);
           collect(to);
         }});
  }
  for (const protocol::GrantAction& grant : node.actions.grants) {
    EXPECT_EQ(place_of(grant.block), grant.place);
    const auto tag = static_cast<std::uint32_t>(node.landings.size());
    node.landings.push_back(grant);
    const std::int32_t from = grant.from.value();
    node.pending.push_back({fmt::format("grant {}{} from {}", name(grant.tile, grant.number),
                                        at_place(grant.place), from),
                            [this, n, grant, tag, from] {
                              at(from).protocol->grant_arrived(grant.job, grant.tile, grant.number,
                                                               NodeId{n}, tag, grant.asked,
                                                               at(from).actions);
                              collect(from);
                            },
                            nullptr, grant.block});
  }
  for (const protocol::SendAction& send : node.actions.sends) {
    EXPECT_EQ(place_of(send.block), send.place);
    const std::int32_t to = send.to.value();
    const std::string what =
        fmt::format("{}{} to {}", name(send.tile, send.number), at_place(send.place), to);
    node.pending.push_back({(send.empty ? "send empty " : "send ") + what,
                            [this, n, send, to, what] {
                              at(n).pending.push_back({"sent " + what, [this, n, send] {
                                                         at(n).protocol->send_finished(
                                                             *send.record, at(n).actions);
                                                         collect(n);
                                                       }});
                              at(to).protocol->data_arrived(*at(to).landings.at(send.tag).record,
                                                            send.empty, at(to).actions);
                              collect(to);
                            },
                            nullptr, send.block});
  }
}

Lines Script::pending_in_order(std::int32_t node) {
  Lines lines;
  for (const Pending& p : at(node).pending) lines.push_back(p.line);
  return lines;
}

Lines Script::pending(std::int32_t node) {
  Lines lines = pending_in_order(node);
  std::sort(lines.begin(), lines.end());
  return lines;
}

void Script::carry_out(std::int32_t n, const std::string& line) {
  auto& pending = at(n).pending;
  const auto found = std::find_if(pending.begin(), pending.end(),
                                  [&](const Pending& p) { return p.line == line; });
  if (found == pending.end()) {
    ADD_FAILURE() << "node " << n << " does not want to '" << line
                  << "' but: " << testing::PrintToString(this->pending(n));
    return;
  }
  const auto act = std::move(found->carry_out);
  pending.erase(found);
  act();
}

void Script::carry_out_all() {
  for (bool again = true; again;) {
    again = false;
    for (std::int32_t n = 0; n < options_.nodes; ++n) {
      while (!at(n).pending.empty()) {
        again = true;
        carry_out(n, at(n).pending.front().line);
      }
    }
  }
}

Lines Script::freed(std::int32_t node) {
  Lines lines = std::exchange(at(node).freed, {});
  std::sort(lines.begin(), lines.end());
  return lines;
}

std::string Script::pool_of(BlockRef block) {
  return fmt::format("{} {}", block.pool < job_pool_base ? "own" : "job", place_of(block).value());
}

BlockRef Script::block(std::int32_t node, const std::string& line) {
  for (const Pending& p : at(node).pending) {
    if (p.line == line && p.block.valid()) return p.block;
  }
  throw std::logic_error("there is no message to '" + line + "'");
}

const protocol::Task& Script::ready(std::int32_t node, const std::string& task) {
  for (const Pending& p : at(node).pending) {
    if (p.line == "run " + task) return *p.task;
  }
  throw std::logic_error("task " + task + " is not ready");
}

// ---- instances -------------------------------------------------------------------------------

std::string Script::instance(InstanceKind kind, TileId tile) const {
  const auto matrix = static_cast<std::size_t>(tile.matrix.value());
  const Location home = writer_.matrices()[matrix].homes[static_cast<std::size_t>(tile.index)];
  return fmt::format("{} {}{}", protocol::name(kind), name(tile), at_place(home.place));
}

void Script::add_instances(const protocol::Task& task, Lines& lines) const {
  for (std::uint8_t i = 0; i < task.operand_count; ++i) {
    const protocol::Operand& operand = task.operands[i];
    if (operand.scratch != nullptr && operand.in != nullptr) {  // what is updated is read first
      lines.push_back(instance(operand.instance.kind, operand.tile));
    }
    lines.push_back(instance(operand.kind, operand.tile));
    if (operand.kind == InstanceKind::intranode_source_minor_output) {
      lines.push_back(instance(operand.way.sink->kind, operand.tile));
    }
  }
}

Lines Script::instances(std::int32_t node) {
  Lines lines;
  const protocol::Links& items = job(node).items;
  for (const protocol::Links* link = items.next; link != &items; link = link->next) {
    const auto& item = *static_cast<const Item*>(link);
    switch (item.item_kind) {
      case Item::Kind::task:
        add_instances(static_cast<const protocol::Task&>(item), lines);
        break;
      case Item::Kind::sink: {
        const auto& sink = static_cast<const protocol::Sink&>(item);
        lines.push_back(
            fmt::format("{} from {}", instance(sink.kind, sink.version->tile), sink.from.value()));
        break;
      }
    }
  }
  const protocol::Links& sends = job(node).open_sends;
  for (const protocol::Links* link = sends.next; link != &sends; link = link->next) {
    const auto& send =
        *static_cast<const protocol::Send*>(static_cast<const protocol::OwnedLinks*>(link)->owner);
    if (send.done) continue;
    lines.push_back(fmt::format("{} for {}", instance(send.kind(), send.tile), send.to.value()));
  }
  return lines;
}

}  // namespace heddle::simulation
