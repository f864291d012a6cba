#include "node-runtime/trace/node_stream.hpp"

#include <algorithm>
#include <chrono>
#include <exception>
#include <pthread.h>
#include <stop_token>
#include <utility>

namespace heddle::trace {
namespace {

std::string checked_name(const std::filesystem::path& path, const RunInfo& info) {
  check_metadata(path, info.metadata);
  refuse_what_is_no_file(path.string());
  return path.string();
}

}  // namespace

NodeStream::NodeStream(const std::filesystem::path& path, Recorder& recorder, const RunInfo& info,
                       std::function<void()> begin)
    : path_(path), recorder_(recorder), sink_(checked_name(path, info)), writer_(sink_) {
  writer_.node(recorder_.options().node, recorder_.options().node_count);
  writer_.metadata(info.metadata);
  writer_.clock_offsets(info.clock_offsets);
  sink_.flush();
  thread_ = std::jthread(
      [this, begin = std::move(begin)](const std::stop_token& token) { run(token, begin); });
}

NodeStream::~NodeStream() {
  if (!thread_.joinable()) return;
  stop();
  write_on();
  if (trouble_) return;
  try {
    write_totals();
    sink_.close();
  } catch (const std::exception&) {
    // finish() is missing only after a failure of the run, which is reported elsewhere.
  }
}

void NodeStream::finish(const RunInfo& info) {
  check_metadata(path_, info.metadata);
  stop();
  write_on();
  if (trouble_) throw *trouble_;
  writer_.clock_offsets(info.clock_offsets);
  writer_.metadata(info.metadata);
  write_totals();
  writer_.end();
  sink_.close();
}

void NodeStream::run(const std::stop_token& stop, const std::function<void()>& begin) {
  ::pthread_setname_np(::pthread_self(), "trace");
  if (begin) begin();
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested()) {
    wake_.wait_for(lock, stop, interval, [] { return false; });
    write_on();
  }
}

void NodeStream::stop() {
  thread_.request_stop();
  thread_.join();
}

void NodeStream::write_on() noexcept {
  if (trouble_) return;
  try {
    write_news();
    sink_.flush();
  } catch (const Error& error) {
    trouble_ = error;
  } catch (const std::exception& error) {
    trouble_ = Error(ErrorCode::internal, error.what());
  }
}

void NodeStream::write_news() {
  struct News {
    ThreadTrace* thread = nullptr;
    std::vector<std::span<const Record>> runs;
  };
  const std::vector<ThreadTrace*> threads = recorder_.threads();
  std::vector<News> all(threads.size());
  // First: afterwards names() includes every name that these records refer to.
  for (std::size_t i = 0; i < threads.size(); ++i) {
    all[i].thread = threads[i];
    threads[i]->for_each_run([&](std::span<const Record> run) { all[i].runs.push_back(run); });
  }
  const std::vector<std::string> names = recorder_.names();
  if (names.size() > names_)
    writer_.names(std::span(names).subspan(std::exchange(names_, names.size())));
  std::vector<MatrixDescription> matrices = recorder_.matrices();
  if (matrices != matrices_) writer_.matrices(matrices);
  matrices_ = std::move(matrices);
  for (; threads_ < threads.size(); ++threads_) {
    writer_.thread(threads[threads_]->name(), threads[threads_]->sort_order());
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (const auto run : all[i].runs) {
      writer_.records(i, run);
      all[i].thread->release(run.size());
    }
  }
}

void NodeStream::write_totals() {
  const std::vector<ThreadTrace*> threads = recorder_.threads();
  for (std::size_t i = 0; i < std::min(threads_, threads.size()); ++i) {
    writer_.totals(i, threads[i]->totals(), threads[i]->dropped());
  }
}

}  // namespace heddle::trace
