// Ends the child processes that an ending thread leaves behind, with their process groups. It makes no Node-API call.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <set>
#include <string>

namespace millrace {

/// The children that the calling thread has started and that lead their process group, zombies included. Empty if the
/// kernel does not list them (CONFIG_PROC_CHILDREN).
std::set<pid_t> LeadersStartedByThisThread();

/// Kills the groups that these children lead, reaps the children, then removes the folders. Nobody else may wait for
/// the children. Returns within about `deadline`: a thread of its own finishes what takes longer, since a killed
/// process needs a turn on a core and then gives its memory back. Thread: any.
void EndChildren(std::set<pid_t> leaders, std::set<std::string> folders, std::chrono::milliseconds deadline);

}  // namespace millrace
