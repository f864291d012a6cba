#include "config/options.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <limits>
#include <optional>
#include <type_traits>

#include "base/assert.hpp"
#include "config/problem.hpp"
#include "config/words.hpp"

namespace heddle::config {
namespace {

constexpr std::int64_t extent_max = 1'000'000'000;  // keeps 8 n^2 bytes below 2^63
constexpr std::int64_t any_integer = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t device_bytes_min = 256;
constexpr std::int64_t device_bytes_max = std::int64_t{64} << 40;
constexpr std::int64_t fragment_bytes_min = 256;
constexpr std::int64_t fragment_bytes_max = std::int64_t{1} << 40;
constexpr double any_number = std::numeric_limits<double>::infinity();

constexpr std::array<std::string_view, 2> matrix_files{".npy", ".mtx"};
constexpr std::array<std::string_view, 1> numpy_files{".npy"};

template <class T>
struct is_optional : std::false_type {};
template <class T>
struct is_optional<std::optional<T>> : std::true_type {};

template <class T>
Value to_value(const T& field) {
  if constexpr (is_optional<T>::value) {
    return field ? to_value(*field) : Value{};
  } else if constexpr (std::is_enum_v<T>) {
    return std::string(name_of(field));
  } else if constexpr (std::is_same_v<T, std::uint64_t>) {
    return static_cast<std::int64_t>(field);
  } else {
    return field;
  }
}

template <class T>
void from_value(T& field, const Value& value) {
  if constexpr (is_optional<T>::value) {
    if (std::holds_alternative<std::monostate>(value)) {
      field.reset();
    } else {
      from_value(field.emplace(), value);
    }
  } else if constexpr (std::is_enum_v<T>) {
    const NameList names = names_of(T{});
    const auto found = std::find(names.begin(), names.end(), std::get<std::string>(value));
    HEDDLE_CHECK(found != names.end(), "'{}' is not a choice", std::get<std::string>(value));
    field = static_cast<T>(found - names.begin());
  } else if constexpr (std::is_same_v<T, std::uint64_t>) {
    field = static_cast<std::uint64_t>(std::get<std::int64_t>(value));
  } else {
    field = std::get<T>(value);
  }
}

template <class T>
struct Bare {
  using type = T;
};
template <class T>
struct Bare<std::optional<T>> {
  using type = T;
};

template <class T>
constexpr NameList choices_of() {
  if constexpr (std::is_enum_v<T>) {
    return names_of(T{});
  } else {
    return {};
  }
}

// `Access` is a stateless `[](auto& config) -> auto&`, so the table holds plain function pointers.
template <class Access>
constexpr Option leaf(std::string_view path, Kind kind, std::string_view help, Access access) {
  using Field = std::remove_cvref_t<std::invoke_result_t<Access, Config&>>;
  static_cast<void>(access);
  Option option;
  option.path = path;
  option.kind = kind;
  option.help = help;
  option.choices = choices_of<typename Bare<Field>::type>();
  option.get = [](const Config& config) { return to_value(Access{}(config)); };
  option.set = [](Config& config, const Value& value) { from_value(Access{}(config), value); };
  return option;
}

template <class Present, class Create>
constexpr Option optional_group(std::string_view path, std::string_view help, Present present,
                                Create create) {
  Option option;
  option.path = path;
  option.help = help;
  option.nullable = true;
  option.present = present;
  option.create = create;
  return option;
}

constexpr Option group(std::string_view path, std::string_view help) {
  return optional_group(
      path, help, [](const Config&) { return true; }, [](Config&) {});
}

constexpr Option with_auto(Option option) {
  option.automatic = true;
  return option;
}
constexpr Option with_null(Option option) {
  option.nullable = true;
  return option;
}
constexpr Option required(Option option) {
  option.required = true;
  option.nullable = false;
  return option;
}
constexpr Option within(Option option, std::int64_t min, std::int64_t max) {
  option.integer_min = min;
  option.integer_max = max;
  return option;
}
constexpr Option at_least(Option option, double min, double max = any_number) {
  option.number_min = min;
  option.number_max = max;
  return option;
}
constexpr Option above(Option option, double min, double max = any_number) {
  option.above_min = true;
  return at_least(option, min, max);
}
constexpr Option reads(Option option, NameList extensions = {}) {
  option.file_use = FileUse::read;
  option.extensions = extensions;
  return option;
}
constexpr Option writes(Option option, NameList extensions = {}) {
  option.file_use = FileUse::written;
  option.extensions = extensions;
  return option;
}
constexpr Option note(Option option, std::string_view default_note) {
  option.default_note = default_note;
  return option;
}
/// `true` and `false` are accepted for these choices.
template <auto if_true, auto if_false>
constexpr Option or_boolean(Option option) {
  option.if_true = name_of(if_true);
  option.if_false = name_of(if_false);
  return option;
}
template <class... Enum>
constexpr Option only_for(Option option, Enum... kinds) {
  option.kinds = ((1U << static_cast<unsigned>(kinds)) | ...);
  return option;
}

constexpr auto problem_options() {
  return std::array{
      optional_group(
          "problem", "what to solve; left out in files for driver programs",
          [](const Config& c) { return c.problem.has_value(); },
          [](Config& c) { c.problem.emplace(); }),
      leaf(
          "problem.factorization", Kind::choice, "how the matrix is factorized",
          [](auto& c) -> auto& { return c.problem->factorization; }),
      required(group("problem.matrix", "the matrix: either file or generate")),
      reads(leaf(
                "problem.matrix.file", Kind::path, "read it: NumPy (2-D float64) or Matrix Market",
                [](auto& c) -> auto& { return c.problem->matrix.file; }),
            matrix_files),
      leaf(
          "problem.matrix.generate", Kind::choice, "make it instead, tile by tile, from the seed",
          [](auto& c) -> auto& { return c.problem->matrix.generate; }),
  };
}

constexpr auto generated_matrix_options() {
  using enum MatrixKind;
  return std::array{
      required(
          within(only_for(leaf(
                              "problem.matrix.n", Kind::integer, "columns of a generated matrix",
                              [](auto& c) -> auto& { return c.problem->matrix.n; }),
                          spd, random, kriging, lehmer, identity, conditioned, graded, dependent,
                          polynomial),
                 0, extent_max)),
      note(within(only_for(leaf(
                               "problem.matrix.m", Kind::integer, "rows of a generated matrix",
                               [](auto& c) -> auto& { return c.problem->matrix.m; }),
                           spd, random, kriging, lehmer, identity, conditioned, graded, dependent,
                           polynomial),
                  0, extent_max),
           "n"),
      at_least(only_for(leaf(
                            "problem.matrix.condition", Kind::number,
                            "largest over smallest eigenvalue (spd), singular value (conditioned), "
                            "or scale of a column (graded)",
                            [](auto& c) -> auto& { return c.problem->matrix.condition; }),
                        spd, conditioned, graded),
               1),
      within(only_for(leaf(
                          "problem.matrix.seed", Kind::integer,
                          "the same seed gives the same bits on any layout",
                          [](auto& c) -> auto& { return c.problem->matrix.seed; }),
                      spd, random, kriging, conditioned, graded, dependent),
             0, any_integer),
      above(only_for(leaf(
                         "problem.matrix.range", Kind::number,
                         "correlation length; points lie in the unit square",
                         [](auto& c) -> auto& { return c.problem->matrix.range; }),
                     kriging),
            0),
      above(
          only_for(leaf(
                       "problem.matrix.smoothness", Kind::number, "order of the Matern covariance",
                       [](auto& c) -> auto& { return c.problem->matrix.smoothness; }),
                   kriging),
          0, 20),
      at_least(only_for(leaf(
                            "problem.matrix.nugget", Kind::number,
                            "measurement variance added to the diagonal",
                            [](auto& c) -> auto& { return c.problem->matrix.nugget; }),
                        kriging),
               0),
      note(within(only_for(leaf(
                               "problem.matrix.rank", Kind::integer,
                               "independent columns, the first ones; at most n",
                               [](auto& c) -> auto& { return c.problem->matrix.rank; }),
                           dependent),
                  0, extent_max),
           "n - 1"),
      at_least(only_for(leaf(
                            "problem.matrix.distance", Kind::number,
                            "largest deviation from the linear dependence",
                            [](auto& c) -> auto& { return c.problem->matrix.distance; }),
                        dependent),
               0),
  };
}

constexpr auto rhs_and_output_options() {
  return std::array{
      optional_group(
          "problem.rhs", "the right-hand sides, file or generate; may be left out",
          [](const Config& c) { return c.problem && c.problem->rhs; },
          [](Config& c) { c.problem->rhs.emplace(); }),
      reads(leaf(
                "problem.rhs.file", Kind::path, "read them, one in each column",
                [](auto& c) -> auto& { return c.problem->rhs->file; }),
            matrix_files),
      leaf(
          "problem.rhs.generate", Kind::choice, "make them instead from the seed",
          [](auto& c) -> auto& { return c.problem->rhs->generate; }),
      within(
          only_for(leaf(
                       "problem.rhs.columns", Kind::integer, "number of generated right-hand sides",
                       [](auto& c) -> auto& { return c.problem->rhs->columns; }),
                   RhsKind::random),
          1, extent_max),
      within(only_for(leaf(
                          "problem.rhs.seed", Kind::integer, "seed of generated right-hand sides",
                          [](auto& c) -> auto& { return c.problem->rhs->seed; }),
                      RhsKind::random),
             0, any_integer),
      group("problem.output", "the files to write; each may be left out"),
      writes(with_null(leaf(
                 "problem.output.solution", Kind::path, "where the solution x goes",
                 [](auto& c) -> auto& { return c.problem->output.solution; })),
             numpy_files),
      writes(with_null(leaf(
                 "problem.output.factor", Kind::path, "where the factor goes: L or R",
                 [](auto& c) -> auto& { return c.problem->output.factor; })),
             numpy_files),
      writes(with_null(leaf(
                 "problem.output.q", Kind::path, "where the thin Q of QR goes, m x n",
                 [](auto& c) -> auto& { return c.problem->output.q; })),
             numpy_files),
      or_boolean<Verify::automatic, Verify::none>(leaf(
          "problem.verify", Kind::choice,
          "residuals afterwards: of the solution, and of the factorization by random vectors or "
          "full",
          [](auto& c) -> auto& { return c.problem->verify; })),
      leaf(
          "problem.overlap", Kind::boolean,
          "devices factorize a matrix file's first columns while later ones are read; false: "
          "to time the factorization alone",
          [](auto& c) -> auto& { return c.problem->overlap; }),
  };
}

constexpr auto layout_options() {
  return std::array{
      group("layout", "how the matrix is cut and where its tiles live"),
      with_auto(leaf(
          "layout.grid", Kind::grid, "rows and columns of the grid of nodes",
          [](auto& c) -> auto& { return c.layout.grid; })),
      with_auto(within(leaf(
                           "layout.tile", Kind::integer, "rows and columns of a tile, B",
                           [](auto& c) -> auto& { return c.layout.tile; }),
                       1, extent_max)),
      with_auto(
          within(leaf(
                     "layout.strip", Kind::integer, "columns of each tile for the CPUs; k * small",
                     [](auto& c) -> auto& { return c.layout.strip; }),
                 0, extent_max)),
      with_auto(within(leaf(
                           "layout.small", Kind::integer,
                           "columns of the small tiles of a strip, and of fine tasks, b",
                           [](auto& c) -> auto& { return c.layout.small; }),
                       1, extent_max)),
      with_auto(leaf(
          "layout.hierarchy", Kind::choice, "on: CPU workers divide tasks into fine ones of small",
          [](auto& c) -> auto& { return c.layout.hierarchy; })),
      with_auto(within(leaf(
                           "layout.inner", Kind::integer, "inner blocking of the QR kernels",
                           [](auto& c) -> auto& { return c.layout.inner; }),
                       1, extent_max)),
      with_auto(within(leaf(
                           "layout.virtual", Kind::integer, "tiles per virtual tile in QR",
                           [](auto& c) -> auto& { return c.layout.virtual_tiles; }),
                       1, extent_max)),
      with_auto(leaf(
          "layout.tree", Kind::choice, "QR: virtual tiles joined in turn or in pairs",
          [](auto& c) -> auto& { return c.layout.tree; })),
  };
}

constexpr auto node_options() {
  return std::array{
      group("runtime", "the runtime of each node"),
      with_auto(within(
          leaf(
              "runtime.cpu_workers", Kind::integer, "threads per node that compute on CPU cores",
              [](auto& c) -> auto& { return c.runtime.cpu_workers; }),
          1, 4096)),
      group("runtime.devices", "the GPUs of each node"),
      with_auto(leaf(
          "runtime.devices.backend", Kind::choice, "CUDA, none, or devices emulated by threads",
          [](auto& c) -> auto& { return c.runtime.devices.backend; })),
      with_auto(within(leaf(
                           "runtime.devices.per_node", Kind::integer, "devices that a node uses",
                           [](auto& c) -> auto& { return c.runtime.devices.per_node; }),
                       0, 64)),
      with_auto(
          within(leaf(
                     "runtime.devices.memory", Kind::size, "memory of each device that may be used",
                     [](auto& c) -> auto& { return c.runtime.devices.memory; }),
                 device_bytes_min, device_bytes_max)),
      with_auto(within(leaf(
                           "runtime.devices.streams", Kind::integer,
                           "streams of each device that kernels run on side by side",
                           [](auto& c) -> auto& { return c.runtime.devices.streams; }),
                       1, 16)),
      within(leaf(
                 "runtime.devices.nodes_per_device", Kind::integer,
                 "nodes of a host that share an emulated device as processes share a GPU",
                 [](auto& c) -> auto& { return c.runtime.devices.nodes_per_device; }),
             1, 64),
      at_least(leaf(
                   "runtime.devices.turn_us", Kind::number,
                   "until such a device turns to another node's work; 0: all work side by side",
                   [](auto& c) -> auto& { return c.runtime.devices.turn_us; }),
               0, 1e6),
      group("runtime.devices.links", "links between the emulated devices of a host"),
      at_least(leaf(
                   "runtime.devices.links.rate", Kind::number,
                   "GB/s of each device, in each direction; 0: as fast as memory",
                   [](auto& c) -> auto& { return c.runtime.devices.link_rate; }),
               0, 1e6),
      at_least(leaf(
                   "runtime.devices.links.latency_us", Kind::number,
                   "of a copy between devices, beside its bytes",
                   [](auto& c) -> auto& { return c.runtime.devices.link_latency_us; }),
               0, 1e6),
      at_least(leaf(
                   "runtime.devices.links.switch_rate", Kind::number,
                   "GB/s of what devices of a PCI switch share towards others; 0: no limit",
                   [](auto& c) -> auto& { return c.runtime.devices.switch_rate; }),
               0, 1e6),
      with_auto(within(leaf(
                           "runtime.devices.links.devices_per_switch", Kind::integer,
                           "emulated devices on one PCI switch; auto: all",
                           [](auto& c) -> auto& { return c.runtime.devices.devices_per_switch; }),
                       1, 4096)),
      with_auto(within(leaf(
                           "runtime.devices.links.switches_per_socket", Kind::integer,
                           "PCI switches on one socket, of emulated devices; auto: all",
                           [](auto& c) -> auto& { return c.runtime.devices.switches_per_socket; }),
                       1, 4096)),
      with_auto(within(
          leaf(
              "runtime.window", Kind::integer, "generated, unfinished tasks that a node may hold",
              [](auto& c) -> auto& { return c.runtime.window; }),
          1, extent_max)),
      with_auto(leaf(
          "runtime.placement", Kind::choice, "static: reproducible to the bit; dynamic: balanced",
          [](auto& c) -> auto& { return c.runtime.placement; })),
      leaf(
          "runtime.priorities", Kind::choice,
          "program: as algorithms give them; path: by the measured longest way to the end; the "
          "others are for heddle simulate and replay",
          [](auto& c) -> auto& { return c.runtime.priorities; }),
      group("runtime.messages", "messages between nodes"),
      with_auto(leaf(
          "runtime.messages.path", Kind::choice, "path of messages, where it is possible",
          [](auto& c) -> auto& { return c.runtime.messages.path; })),
      leaf(
          "runtime.messages.explain", Kind::boolean, "print the path of messages, and why",
          [](auto& c) -> auto& { return c.runtime.messages.explain; }),
      with_auto(leaf(
          "runtime.messages.readers", Kind::choice,
          "from where the readers of a tile have it. home: all from its home; tree: once to each "
          "host, and from reader to reader",
          [](auto& c) -> auto& { return c.runtime.messages.readers; })),
      with_auto(within(leaf(
                           "runtime.messages.device_memory", Kind::size,
                           "memory of each device for a program's own messages; auto: none",
                           [](auto& c) -> auto& { return c.runtime.messages.device_memory; }),
                       device_bytes_min, device_bytes_max)),
      group("runtime.collectives", "operations of groups of nodes"),
      leaf(
          "runtime.collectives.order", Kind::choice,
          "of reductions. ranks: the same bits wherever nodes are; places: within hosts first",
          [](auto& c) -> auto& { return c.runtime.collectives.order; }),
      with_auto(leaf(
          "runtime.collectives.algorithm", Kind::choice, "for operations that have such a one",
          [](auto& c) -> auto& { return c.runtime.collectives.algorithm; })),
      with_auto(leaf(
          "runtime.collectives.copies", Kind::choice,
          "between nodes' memory and a buffer that they share on a GPU, where there is one",
          [](auto& c) -> auto& { return c.runtime.collectives.copies; })),
      with_auto(within(leaf(
                           "runtime.collectives.fragment", Kind::size,
                           "pieces in which long messages are forwarded",
                           [](auto& c) -> auto& { return c.runtime.collectives.fragment; }),
                       fragment_bytes_min, fragment_bytes_max)),
      leaf(
          "runtime.collectives.explain", Kind::boolean,
          "node 0 prints how each kind of operation was done, and why",
          [](auto& c) -> auto& { return c.runtime.collectives.explain; }),
      at_least(leaf(
                   "runtime.watchdog_seconds", Kind::number,
                   "end a run that makes no progress for this long",
                   [](auto& c) -> auto& { return c.runtime.watchdog_seconds; }),
               0.1, 1e6),
      at_least(leaf(
                   "runtime.silence_seconds", Kind::number,
                   "take a node for lost that says nothing for this long",
                   [](auto& c) -> auto& { return c.runtime.silence_seconds; }),
               2, 1e6),
      leaf(
          "runtime.wait", Kind::choice, "what a thread without work does",
          [](auto& c) -> auto& { return c.runtime.wait; }),
      with_auto(reads(leaf(
          "machine", Kind::path, "measurements that `heddle tune` wrote",
          [](auto& c) -> auto& { return c.machine; }))),
      group("logging", "messages"),
      leaf(
          "logging.level", Kind::choice, "the least important messages that are shown",
          [](auto& c) -> auto& { return c.logging.level; }),
      writes(with_null(leaf(
          "logging.file", Kind::path, "write messages there too",
          [](auto& c) -> auto& { return c.logging.file; }))),
      group("trace", "what ran where and when"),
      writes(with_null(leaf(
          "trace.file", Kind::path,
          "write a trace there: a folder for heddle analyze, or FILE.json for ui.perfetto.dev",
          [](auto& c) -> auto& { return c.trace.file; }))),
  };
}

template <class... Parts>
constexpr auto joined(const Parts&... parts) {
  std::array<Option, (std::tuple_size_v<Parts> + ...)> all{};
  auto out = all.begin();
  ((out = std::copy(parts.begin(), parts.end(), out)), ...);
  return all;
}

constexpr auto table = joined(problem_options(), generated_matrix_options(),
                              rhs_and_output_options(), layout_options(), node_options());

std::string integer_text(const Option& option) {
  if (option.integer_max >= extent_max) return fmt::format("integer >= {}", option.integer_min);
  return fmt::format("integer {}..{}", option.integer_min, option.integer_max);
}

std::string number_text(const Option& option) {
  std::string text =
      fmt::format("number {} {:g}", option.above_min ? ">" : ">=", option.number_min);
  if (option.number_max != any_number) text += fmt::format(", <= {:g}", option.number_max);
  return text;
}

}  // namespace

std::span<const Option> options() {
  return table;
}

const Option* find_option(std::string_view path) {
  const auto found = std::find_if(table.begin(), table.end(),
                                  [&](const Option& option) { return option.path == path; });
  return found == table.end() ? nullptr : &*found;
}

std::string_view parent_of(std::string_view path) {
  const auto dot = path.rfind('.');
  return dot == std::string_view::npos ? std::string_view{} : path.substr(0, dot);
}

std::string_view leaf_of(std::string_view path) {
  const auto dot = path.rfind('.');
  return dot == std::string_view::npos ? path : path.substr(dot + 1);
}

std::string json_path(std::string_view path) {
  std::string text = fmt::format("/{}", path);
  std::ranges::replace(text, '.', '/');
  return text;
}

std::string type_text(const Option& option) {
  std::string text;
  switch (option.kind) {
    case Kind::group:
      text = "mapping";
      break;
    case Kind::choice:
      text = fmt::format("{}{}", fmt::join(option.choices, " | "),
                         option.if_true.empty() ? "" : " | true | false");
      break;
    case Kind::boolean:
      text = "true | false";
      break;
    case Kind::integer:
      text = integer_text(option);
      break;
    case Kind::number:
      text = number_text(option);
      break;
    case Kind::size:
      text = "size such as 512MiB";
      break;
    case Kind::path:
      text = option.extensions.empty()
                 ? "path"
                 : fmt::format("path ending in {}", fmt::join(option.extensions, " or "));
      break;
    case Kind::grid:
      text = "[rows, columns]";
      break;
  }
  if (option.automatic) return "auto | " + text;
  if (option.nullable && !option.is_group()) return "null | " + text;
  return text;
}

std::string kinds_text(const Option& option) {
  const Option* generate = find_option(fmt::format("{}.generate", parent_of(option.path)));
  if (option.kinds == 0 || generate == nullptr) return {};
  if (option.kinds == (1U << generate->choices.size()) - 1) return "any";
  std::string text;
  for (std::size_t i = 0; i < generate->choices.size(); ++i) {
    if ((option.kinds >> i & 1U) == 0) continue;
    text += fmt::format("{}{}", text.empty() ? "" : ", ", generate->choices[i]);
  }
  return text;
}

Config full_defaults() {
  Config config;
  for (const Option& option : table) {
    if (option.is_group() && !option.present(config)) option.create(config);
  }
  return config;
}

}  // namespace heddle::config
