// Copies within host memory on several threads, for snapshots and results of ordinary arrays. One core cannot use the
// whole bandwidth of the memory; on fresh pages it reaches less than a tenth of it.
#pragma once

#include <cstddef>
#include <span>

namespace millrace {

/// Copies `src` to `dst`, which have the same size and do not overlap. Thread: any. Blocks; large copies of several
/// threads run one after another.
void CopyHost(std::span<std::byte> dst, std::span<const std::byte> src);

/// The same for memory that nobody has accessed yet, beside calls of CopyHost. Thread: not an environment's. Blocks.
void CopyToFresh(std::span<std::byte> dst, std::span<const std::byte> src);

/// Touches every page, so that the system provides it, and changes no byte, also if other threads write meanwhile.
/// Thread: any. Blocks.
void TouchPages(std::span<std::byte> bytes);

/// Asks Linux to use huge pages for memory that nobody has accessed yet: its first touch is then several times as fast,
/// and so is page-locking it. Without effect where the system has no huge pages.
void AdviseHugePages(std::span<std::byte> bytes);

}  // namespace millrace
