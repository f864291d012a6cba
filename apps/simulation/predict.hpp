#pragma once

#include "apps/file_uses.hpp"
#include "apps/results.hpp"
#include "apps/simulation/options.hpp"
#include "apps/simulation/subject.hpp"

namespace heddle {

/// What simulating with these options reads and writes.
void add_files(FileUses& files, const PredictionOptions& options);

/// Predicts, prints, and writes what was asked for: one case, or those of a sweep as a table. Of a
/// sweep a case that is refused says why in its row; one at least has a result, or Error(usage) is
/// thrown.
///
/// Kernels are timed (where they are) while nothing else runs, before any simulation; then the
/// cases are simulated side by side, one on each core. The result does not depend on that.
void predict(PredictionSubject& subject, const PredictionOptions& options, Results& results);

}  // namespace heddle
