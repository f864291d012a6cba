#pragma once

#include <cstdint>

#include "node-runtime/transport/pack/prepare.hpp"

namespace heddle::test {

/// Runs what a GPU's threads would do, one thread after the other; those of a transpose's tile wait
/// for each other half way.
class HostGrid final : public packing::Launcher {
 public:
  HostGrid(bool packs, std::uint32_t blocks, std::uint32_t threads)
      : packs_(packs), blocks_(blocks), threads_(threads) {}

  void launch(const packing::Strided& work, std::size_t word_bytes) override {
    ++strided;
    with_word(word_bytes, [&](auto word) {
      using Word = decltype(word);
      if (work.path.levels <= 1) {
        each_thread([&](auto packs, const packing::Crew& crew) {
          packing::copy_strided<Word, 1, packs()>(work, crew);
        });
      } else if (work.path.levels == 2) {
        each_thread([&](auto packs, const packing::Crew& crew) {
          packing::copy_strided<Word, 2, packs()>(work, crew);
        });
      } else {
        each_thread([&](auto packs, const packing::Crew& crew) {
          packing::copy_strided<Word, packing::Path::levels_max, packs()>(work, crew);
        });
      }
    });
  }

  void launch(const packing::Transposed& work, std::size_t word_bytes) override {
    ++transposed;
    with_word(word_bytes, [&](auto word) {
      using Word = decltype(word);
      for (std::uint32_t number = 0; number < work.tiles; ++number) {
        packing::Tile<Word> tile;
        each_direction([&](auto packs) {
          for (std::uint32_t thread = 0; thread < packing::tile_threads; ++thread) {
            packing::load_tile<Word, packs()>(work, number, thread, tile);
          }
          for (std::uint32_t thread = 0; thread < packing::tile_threads; ++thread) {
            packing::store_tile<Word, packs()>(work, number, thread, tile);
          }
        });
      }
    });
    each_thread([&](auto packs, const packing::Crew& crew) {
      for (const packing::Edge& edge : work.edges) {
        packing::copy_bytes<packs()>(edge.place, edge.bytes, crew.number(), crew.count());
      }
    });
  }

  void launch(const packing::Trapezoid& work, std::size_t word_bytes) override {
    ++trapezoids;
    with_word(word_bytes, [&](auto word) {
      using Word = decltype(word);
      each_thread([&](auto packs, const packing::Crew& crew) {
        if (work.line_mask > 0 && work.has_lines_in_memory) {
          packing::copy_trapezoid_by_lines<Word, packs(), true>(work, crew);
        } else if (work.line_mask > 0) {
          packing::copy_trapezoid_by_lines<Word, packs(), false>(work, crew);
        } else {
          packing::copy_trapezoid<Word, packs()>(work, crew);
        }
      });
    });
  }

  void launch(const packing::Units& work) override {
    each_thread(
        [&](auto packs, const packing::Crew& crew) { packing::copy_units<packs()>(work, crew); });
  }

  void launch(const packing::StridedBetween& work, std::size_t word_bytes) override {
    ++between;
    with_word(word_bytes, [&](auto word) {
      using Word = decltype(word);
      each_thread([&](auto, const packing::Crew& crew) {
        if (work.from.levels <= 1 && work.to.levels <= 1) {
          packing::copy_between<Word, 1>(work, crew);
        } else {
          packing::copy_between<Word, packing::Path::levels_max>(work, crew);
        }
      });
    });
  }

  void launch(const packing::TrapezoidBetween& work, std::size_t word_bytes) override {
    ++between;
    if (work.line_mask > 0) ++by_lines;
    with_word(word_bytes, [&](auto word) {
      using Word = decltype(word);
      each_thread([&](auto, const packing::Crew& crew) {
        if (work.line_mask > 0 && work.has_lines_in_memory) {
          packing::copy_between_by_lines<Word, true>(work, crew);
        } else if (work.line_mask > 0) {
          packing::copy_between_by_lines<Word, false>(work, crew);
        } else {
          packing::copy_between<Word>(work, crew);
        }
      });
    });
  }

  int strided = 0;
  int transposed = 0;
  int trapezoids = 0;
  int between = 0;
  int by_lines = 0;  ///< of these

 private:
  template <class Call>
  static void with_word(std::size_t word_bytes, const Call& call) {
    switch (word_bytes) {
      case 1:
        return call(std::uint8_t{});
      case 2:
        return call(std::uint16_t{});
      case 4:
        return call(std::uint32_t{});
      case 8:
        return call(std::uint64_t{});
      default:
        return call(packing::Word16{});
    }
  }
  template <class Call>
  void each_direction(const Call& call) const {
    if (packs_) {
      call(std::true_type{});
    } else {
      call(std::false_type{});
    }
  }
  template <class Call>
  void each_thread(const Call& call) const {
    each_direction([&](auto packs) {
      for (std::uint32_t block = 0; block < blocks_; ++block) {
        for (std::uint32_t thread = 0; thread < threads_; ++thread) {
          call(packs, packing::Crew{block, blocks_, thread, threads_});
        }
      }
    });
  }

  bool packs_;
  std::uint32_t blocks_;
  std::uint32_t threads_;
};

}  // namespace heddle::test
