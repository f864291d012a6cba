#include <filesystem>
#include <fmt/core.h>
#include <optional>

#include "config/loader.hpp"
#include "config/problem.hpp"
#include "config/words.hpp"

// Rules between keys. Each error is reported at the key to change.
namespace heddle::config {
namespace {

std::string in(std::string_view group, std::string_view key) {
  return fmt::format("{}.{}", group, key);
}

/// Required groups inside present groups.
void check_required_groups(const Draft& draft, Findings& findings) {
  for (const Option& option : options()) {
    if (!option.is_group() || !option.required || draft.seen.contains(option.path)) continue;
    const Seen* parent = draft.valid(parent_of(option.path));
    if (parent == nullptr) continue;
    findings.add(parent->key, option.path, fmt::format("missing; {}", option.help));
  }
}

/// A leaf that applies only to some values of the sibling `generate`.
void check_generated_leaf(const Draft& draft, const Option& leaf, std::string_view generate_path,
                          std::optional<std::size_t> kind, Findings& findings) {
  const auto given = draft.seen.find(leaf.path);
  const bool is_given = given != draft.seen.end();
  const bool applies = kind && (leaf.kinds >> *kind & 1U) != 0;
  if (is_given && !kind) {
    findings.add(given->second.key, leaf.path,
                 fmt::format("goes only with generate, not with file; leave it out"));
  } else if (is_given && !applies) {
    findings.add(given->second.key, leaf.path,
                 fmt::format("does not apply to generate: {}; it goes with {}",
                             find_option(generate_path)->choices[*kind], kinds_text(leaf)));
  } else if (!is_given && applies && leaf.required) {
    findings.add(draft.valid(generate_path)->value, leaf.path,
                 fmt::format("missing; a generated matrix needs it: {}", type_text(leaf)));
  }
}

/// A group with either `file` or `generate`.
void check_source(const Draft& draft, const Option& group, Findings& findings) {
  const std::string file_path = in(group.path, "file");
  const std::string generate_path = in(group.path, "generate");
  const Option* generate = find_option(generate_path);
  const Seen* place = draft.valid(group.path);
  if (generate == nullptr || place == nullptr) return;

  const auto file = draft.seen.find(file_path);
  const auto generated = draft.seen.find(generate_path);
  const bool has_file = file != draft.seen.end();
  const bool has_generate = generated != draft.seen.end();
  if (!has_file && !has_generate) {
    findings.add(place->key, group.path, "expected either file or generate in it; found neither");
    return;
  }
  if (has_file && has_generate) {
    const Seen& first = file->second;
    const Seen& second = generated->second;
    const bool file_first = std::tie(first.key.source, first.key.line, first.key.column) <
                            std::tie(second.key.source, second.key.line, second.key.column);
    findings.add(file_first ? second.key : first.key, file_first ? generate_path : file_path,
                 fmt::format("file and generate exclude each other; the other is at {}",
                             findings.place(file_first ? first.key : second.key)));
    return;
  }
  std::optional<std::size_t> kind;
  if (has_generate) {
    if (!generated->second.valid) return;
    const std::string name = std::get<std::string>(generate->get(draft.config));
    for (std::size_t i = 0; i < generate->choices.size(); ++i) {
      if (generate->choices[i] == name) kind = i;
    }
  }
  for (const Option& leaf : options()) {
    if (leaf.kinds == 0 || parent_of(leaf.path) != group.path) continue;
    check_generated_leaf(draft, leaf, generate_path, kind, findings);
  }
}

/// Requires `smaller` <= `larger` if both are given.
void check_order(const Draft& draft, const std::optional<std::int64_t>& smaller,
                 std::string_view smaller_path, const std::optional<std::int64_t>& larger,
                 std::string_view larger_path, Findings& findings) {
  const Seen* place = draft.valid(smaller_path);
  if (place == nullptr || !smaller || !larger || *smaller <= *larger) return;
  findings.add(
      place->value, smaller_path,
      fmt::format("expected at most {} = {}; found {}", leaf_of(larger_path), *larger, *smaller));
}

bool is_positive_definite(MatrixKind kind) {
  using enum MatrixKind;
  return kind == spd || kind == kriging || kind == lehmer || kind == identity;
}

void check_matrix(const Draft& draft, Findings& findings) {
  const Seen* generate = draft.valid("problem.matrix.generate");
  if (generate == nullptr || draft.seen.contains("problem.matrix.file")) return;
  const Problem& problem = *draft.config.problem;
  const MatrixKind kind = problem.matrix.generate.value();
  const bool cholesky = problem.factorization == Factorization::cholesky;
  if (kind == MatrixKind::dependent && draft.valid("problem.matrix.n") != nullptr) {
    check_order(draft, problem.matrix.rank, "problem.matrix.rank", problem.matrix.n,
                "problem.matrix.n", findings);
  }
  if (cholesky && !is_positive_definite(kind)) {
    findings.add(generate->value, "problem.matrix.generate",
                 fmt::format("a {} matrix is not symmetric positive definite, so cholesky cannot "
                             "factorize it; use spd, or factorization: qr",
                             name_of(kind)));
    return;
  }
  const Seen* m = draft.valid("problem.matrix.m");
  if (m == nullptr || draft.valid("problem.matrix.n") == nullptr) return;
  const Matrix& matrix = problem.matrix;
  const bool square = cholesky || kind == MatrixKind::spd || kind == MatrixKind::kriging;
  if (square && matrix.rows() != matrix.n) {
    findings.add(
        m->value, "problem.matrix.m",
        fmt::format("expected m = n = {}, since {} is square; found {}", matrix.n,
                    cholesky ? "a matrix for cholesky" : fmt::format("generate: {}", name_of(kind)),
                    matrix.rows()));
  } else if (matrix.rows() < matrix.n) {
    findings.add(m->value, "problem.matrix.m",
                 fmt::format("expected m >= n = {}, since qr needs at least as many rows as "
                             "columns; found {}",
                             matrix.n, matrix.rows()));
  }
}

void check_layout(const Draft& draft, Findings& findings) {
  const Layout& layout = draft.config.layout;
  check_order(draft, layout.strip, "layout.strip", layout.tile, "layout.tile", findings);
  check_order(draft, layout.small, "layout.small", layout.tile, "layout.tile", findings);
  check_order(draft, layout.inner, "layout.inner", layout.tile, "layout.tile", findings);
  const Seen* strip = draft.valid("layout.strip");
  if (strip != nullptr && layout.strip && layout.small && *layout.strip % *layout.small != 0) {
    findings.add(
        strip->value, "layout.strip",
        fmt::format("expected a multiple of small = {}; found {}", *layout.small, *layout.strip));
  }
}

void check_devices(const Draft& draft, Findings& findings) {
  const Devices& devices = draft.config.runtime.devices;
  const Seen* per_node = draft.valid("runtime.devices.per_node");
  if (per_node != nullptr && devices.backend == DeviceBackend::none &&
      devices.per_node.value_or(0) > 0) {
    findings.add(per_node->value, "runtime.devices.per_node",
                 fmt::format("expected 0 or auto with backend: none; found {}", *devices.per_node));
  }
}

void check_output(const Draft& draft, Findings& findings) {
  const Seen* solution = draft.valid("problem.output.solution");
  if (solution != nullptr && draft.config.problem->output.solution &&
      !draft.seen.contains("problem.rhs")) {
    findings.add(solution->value, "problem.output.solution",
                 "there is no solution without right-hand sides; give problem.rhs, or leave it "
                 "out");
  }
  const Seen* q = draft.valid("problem.output.q");
  if (q != nullptr && draft.config.problem->output.q &&
      draft.config.problem->factorization != Factorization::qr) {
    findings.add(q->value, "problem.output.q", "goes only with factorization: qr; leave it out");
  }
}

/// A written file may not be read or written a second time.
void check_files(const Draft& draft, Findings& findings) {
  struct Use {
    const Option* option;
    const Seen* seen;
    std::string file;
  };
  std::vector<Use> uses;
  for (const Option& option : options()) {
    const Seen* seen = option.file_use == FileUse::none ? nullptr : draft.valid(option.path);
    if (seen == nullptr) continue;
    const Value value = option.get(draft.config);
    const auto* path = std::get_if<std::string>(&value);
    if (path == nullptr) continue;
    const std::string file = std::filesystem::path(*path).lexically_normal().string();
    for (const Use& other : uses) {
      const bool written =
          option.file_use == FileUse::written || other.option->file_use == FileUse::written;
      if (!written || other.file != file) continue;
      const bool blame_this = option.file_use == FileUse::written;
      const Use current{&option, seen, file};
      const Use& blamed = blame_this ? current : other;
      const Use& partner = blame_this ? other : current;
      findings.add(blamed.seen->value, blamed.option->path,
                   fmt::format("would overwrite '{}', which {} uses; choose another name",
                               shown(file), partner.option->path));
      break;
    }
    uses.push_back({&option, seen, file});
  }
}

}  // namespace

void check_rules(const Draft& draft, Findings& findings) {
  check_required_groups(draft, findings);
  for (const Option& option : options()) {
    if (option.is_group()) check_source(draft, option, findings);
  }
  check_matrix(draft, findings);
  check_layout(draft, findings);
  check_devices(draft, findings);
  check_output(draft, findings);
  check_files(draft, findings);
}

}  // namespace heddle::config
