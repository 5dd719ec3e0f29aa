// Where NVIDIA's libraries are that do not come with the driver. Thread: any.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace millrace::cuda {

/// What to open, the best first: only the file that `variable` names in the environment, if it does; else the names of
/// the loader, and the files `lib<stem>.so*` in CUDA toolkits and Python packages. `newest`: the number that the newest
/// one has in its name.
std::vector<std::string> LibraryCandidates(const char* variable, const std::string& stem, int newest = 13);

/// The first of these that `try_open` opens and finds complete.
template <typename Library>
std::optional<Library> FirstThatOpens(const std::vector<std::string>& paths,
                                      std::optional<Library> (*try_open)(const std::string& path)) {
  for (const std::string& path : paths) {
    if (std::optional<Library> opened = try_open(path)) return opened;
  }
  return std::nullopt;
}

/// Whether the loader finds a file of this path or name, as far as that is known without opening it.
bool LoaderFinds(const std::string& path);

/// Whether a library of CUDA's release `major` works with the driver: not one of a later major release.
bool SuitsDriver(int major);

/// The file that an open function is from; `otherwise` if it is not known.
std::string PathOf(const void* function, const std::string& otherwise);

}  // namespace millrace::cuda
