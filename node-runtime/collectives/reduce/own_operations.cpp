#include "node-runtime/collectives/reduce/own_operations.hpp"

#include "base/require.hpp"
#include "node-runtime/collectives/reduce/built_in.hpp"

namespace heddle::reduction {

Definition define(const ReduceProperties& properties, std::optional<Scalar> known,
                  std::size_t element_bytes, const ScalarForm& form) {
  const std::string& name = properties.name;
  require(!name.empty(), "a reduce operation without a name");
  for (std::size_t b = 0; b < built_in_count; ++b) {
    require(name != built_in(static_cast<BuiltIn>(b)).name,
            "a reduce operation '{}'; heddle's own one has this name", name);
  }
  require(!properties.exact || properties.commutative,
          "reduce operation '{}' is exact, but not commutative", name);
  const std::optional<Scalar> scalar = properties.scalar ? properties.scalar : known;
  require(scalar.has_value(),
          "reduce operation '{}': its elements of {} bytes consist of scalars that only the "
          "program knows; name one in ReduceProperties::scalar",
          name, element_bytes);
  const auto bytes = static_cast<std::int64_t>(element_bytes);
  require(bytes % size_of(*scalar) == 0,
          "reduce operation '{}': an element of {} bytes is no whole number of {}", name, bytes,
          name_of(*scalar));
  Definition made;
  made.name = name;
  made.scalars_per_element = static_cast<std::int32_t>(bytes / size_of(*scalar));
  made.is_commutative = properties.commutative;
  made.forms.at(static_cast<std::size_t>(*scalar)) = form;
  return made;
}

}  // namespace heddle::reduction
