// Asks the process that runs nvcc.mjs for the whole of a test run, so that a build starts no Node of its own. Without
// that process, and for tests that have the compiler that users have, it becomes nvcc.mjs.
//
//   nvcc_client SOCKET FOLDER ROOT NODE NVCC arguments of nvcc...
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

using std::string;

bool SendAll(int socket, string text) {
  for (ssize_t size; !text.empty(); text.erase(0, static_cast<size_t>(size))) {
    size = send(socket, text.data(), text.size(), MSG_NOSIGNAL);
    if (size <= 0) return false;
  }
  return shutdown(socket, SHUT_WR) == 0;
}

string ReceiveAll(int socket) {
  string text;
  char part[1 << 12];
  for (ssize_t size; (size = read(socket, part, sizeof part)) > 0;) text.append(part, static_cast<size_t>(size));
  return text;
}

string Variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

/// The exit code and what goes to standard error; empty where nobody answers.
string Answer(const char* path, const string& request) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (std::strlen(path) >= sizeof address.sun_path) return "";
  std::strcpy(address.sun_path, path);
  const int one = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (connect(one, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) return "";
  return SendAll(one, request) ? ReceiveAll(one) : "";
}

}  // namespace

int main(int, char** argv) {
  char folder[4096];
  const bool is_usual = Variable("PATH").rfind(string(argv[2]) + ':', 0) == 0 &&
                        getcwd(folder, sizeof folder) != nullptr && string(argv[3]) == folder;
  string request = Variable("MILLRACE_CXX") + '\0';
  for (char** each = argv + 6; *each != nullptr; ++each) request += string(*each) + '\0';
  const string answer = is_usual ? Answer(argv[1], request) : "";
  if (answer.empty()) {
    execv(argv[4], argv + 4);
    std::perror(argv[4]);
    return 127;
  }
  std::fwrite(answer.data() + 1, 1, answer.size() - 1, stderr);
  return answer[0];
}
