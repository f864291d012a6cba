#pragma once

namespace heddle {

/// A file of config/topologies; its text is part of the program.
struct EmbeddedFile {
  const char* name;  ///< "dgx-1v.yaml"
  const char* text;
};

/// In the order of their names; the last one has no name.
extern const EmbeddedFile embedded_files[];

}  // namespace heddle
