// What stands before the compilers on the PATH of tests (test/support/kept-compiler.ts): a compiler for kernels, which
// come on standard input and need the shim's headers alone. Anything else is left to the compiler, and so is what it
// rejects: only what succeeds is kept.
//
//   kept_compiler ROOT SHIM HEADERS SHORT HEADS COMPILER STORE arguments of the compiler...
#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

namespace {

using std::string;
using std::string_view;

char** arguments;
const char* compiler;

bool Exists(const string& path) {
  return access(path.c_str(), F_OK) == 0;
}

bool StartsWith(string_view text, string_view head) {
  return text.substr(0, head.size()) == head;
}

string ReadAll(int file) {
  string text;
  char part[1 << 16];
  for (ssize_t size; (size = read(file, part, sizeof part)) > 0;) text.append(part, static_cast<size_t>(size));
  close(file);
  return text;
}

string ReadFile(const string& path) {
  return ReadAll(open(path.c_str(), O_RDONLY | O_CLOEXEC));
}

bool WriteAll(int file, string_view text) {
  while (!text.empty()) {
    const ssize_t size = write(file, text.data(), text.size());
    if (size <= 0) return false;
    text.remove_prefix(static_cast<size_t>(size));
  }
  return true;
}

bool WriteFile(const string& path, string_view text) {
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0777);
  const bool is_written = WriteAll(file, text);
  return close(file) == 0 && is_written;
}

/// Copies the files whose names begin with `head`.
bool CopyFiles(const string& from, const string& to, const string& head) {
  DIR* const folder = opendir(from.c_str());
  bool is_copied = folder != nullptr;
  while (const dirent* const entry = is_copied ? readdir(folder) : nullptr) {
    const string name = entry->d_name;
    if (name[0] != '.' && StartsWith(name, head))
      is_copied = WriteFile(to + '/' + name, ReadFile(from + '/' + name)) && is_copied;
  }
  if (folder != nullptr) closedir(folder);
  return is_copied;
}

void ReplaceAll(string& text, string_view from, string_view to) {
  for (size_t at = 0; (at = text.find(from, at)) != string::npos; at += to.size()) text.replace(at, from.size(), to);
}

[[noreturn]] void Compile() {
  execv(compiler, arguments);
  std::perror(compiler);
  std::exit(127);
}

void TakeInput(const string& text) {
  const int file = memfd_create("input", MFD_CLOEXEC);
  WriteAll(file, text);
  lseek(file, 0, SEEK_SET);
  dup2(file, 0);
}

[[noreturn]] void CompileText(const string& text) {
  TakeInput(text);
  Compile();
}

/// Whether each header is one of these folders', and none is in the current folder, where the compiler looks first.
bool HasOnlyHeadersOf(const std::vector<string>& folders, string_view text) {
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    string_view line = text.substr(0, end);
    text.remove_prefix(end);
    if (line.find("include") == string_view::npos) continue;
    const auto skip = [&line] { line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size())); };
    skip();
    if (!StartsWith(line, "#")) return false;
    line.remove_prefix(1);
    skip();
    if (!StartsWith(line, "include")) return false;
    line.remove_prefix(7);
    skip();
    const size_t closing = line.find_first_of(">\"", 1);
    if (line.find_first_of("<\"") != 0 || closing == string_view::npos) return false;
    const string header(line.substr(1, closing - 1));
    bool is_found = false;
    for (const string& folder : folders) is_found = is_found || Exists(folder + '/' + header);
    if (!is_found || Exists(header)) return false;
  }
  return true;
}

/// FNV-1a of 128 bits.
string DigestOf(string_view text) {
  const auto prime = (static_cast<unsigned __int128>(1) << 88) + 0x13b;
  auto hash = (static_cast<unsigned __int128>(0x6c62272e07bb0142) << 64) + 0x62b821756295c58d;
  for (const char each : text) hash = (hash ^ static_cast<unsigned char>(each)) * prime;
  char digits[33];
  std::snprintf(digits, sizeof digits, "%016lx%016lx", static_cast<unsigned long>(hash >> 64),
                static_cast<unsigned long>(hash));
  return digits;
}

/// The options that a header is compiled with: without outputs, dumps and libraries.
std::vector<string> OptionsOfHeader() {
  std::vector<string> options;
  for (char** each = arguments + 1; *each != nullptr && string_view(*each) != "-shared"; ++each) {
    const string option = *each;
    if (!StartsWith(option, "-fdump-") && option != "-fstack-usage")
      options.push_back(option == "c++" ? "c++-header" : option);
  }
  return options;
}

/// Precompiles a header, or leaves nothing.
void Precompile(const string& header, std::vector<string> options) {
  const string made = header + ".gch", fresh = made + ".new";
  for (const string& each : {header, string("-o"), fresh}) options.push_back(each);
  std::vector<char*> words = {arguments[0]};
  for (string& each : options) words.push_back(each.data());
  words.push_back(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    const int none = open("/dev/null", O_RDWR);
    for (const int each : {0, 1, 2}) dup2(none, each);
    execv(compiler, words.data());
    _exit(127);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (status == 0) rename(fresh.c_str(), made.c_str());
}

/// The lines before a user's text, and before the first one that is no directive.
size_t EndOfHead(string_view text) {
  constexpr string_view kText = "#line 1 \"kernel.cu\"";
  size_t end = 0;
  while (end < text.size() && text[end] == '#' && !StartsWith(text.substr(end), kText))
    end = std::min(text.find('\n', end), text.size() - 1) + 1;
  return end;
}

/// A text whose head, the shim's macros and headers before the kernel, is one precompiled header: reading these is more
/// than half of a compilation. Empty for a head that came a few times only, because making the header costs two
/// compilations.
string WithPrecompiledHead(const string& text, const string& folder) {
  constexpr off_t kUsesBefore = 3;
  const size_t end = EndOfHead(text);
  const bool is_gcc = string_view(compiler).substr(string_view(compiler).rfind('/') + 1) == "g++";
  if (!is_gcc || text.find("#include \"") >= end) return "";
  const std::vector<string> options = OptionsOfHeader();
  string key = text.substr(0, end);
  for (const string& each : options) key += each + '\n';
  const string header = folder + '/' + DigestOf(key) + ".h";
  if (!Exists(header + ".gch")) {
    const int uses = open((header + ".uses").c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    flock(uses, LOCK_EX);
    WriteAll(uses, ".");
    const bool is_frequent = lseek(uses, 0, SEEK_END) > kUsesBefore;
    if (is_frequent && !Exists(header)) {
      WriteFile(header, string_view(text).substr(0, end));
      Precompile(header, options);
    }
    close(uses);
    if (!Exists(header + ".gch")) return "";
  }
  const auto lines = std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(end), '\n');
  return "#include \"" + header + "\"\n#line " + std::to_string(lines + 1) + " \"<stdin>\"\n" + text.substr(end);
}

}  // namespace

int main(int, char** argv) {
  const string root = argv[1], shim = argv[2], headers = argv[3], written = argv[4], heads = argv[5], store = argv[7];
  compiler = argv[6];
  arguments = argv + 7;
  argv[7] = argv[6];
  const char* const variable = std::getenv("TMPDIR");
  const string scratch = variable == nullptr ? "" : variable;

  string value, output, key;
  bool has_input = false;
  for (char** each = arguments + 1; *each != nullptr; ++each) {
    const string argument = *each;
    key += argument + '\n';
    if (value == "-o") output = argument;
    const bool is_known =
        argument == shim || argument == shim + "/include" || argument == headers || StartsWith(argument, written + '/');
    if ((value == "-I" || value == "-iquote") && !is_known) Compile();
    const bool is_value = !value.empty();
    value.clear();
    if (is_value) continue;
    if (argument == "-o" || argument == "-I" || argument == "-iquote" || argument == "-x") {
      value = argument;
    } else if (argument == "-") {
      has_input = true;
    } else {
      if (argument == "-E" || !StartsWith(argument, "-")) Compile();
      for (const char* const other : {"-g", "-I", "-i", "-B", "-M", "-specs"})
        if (StartsWith(argument, other)) Compile();
    }
  }
  if (!has_input || scratch.empty() || (!output.empty() && !StartsWith(output, scratch + '/'))) Compile();

  const string text = ReadAll(dup(0));
  if (!HasOnlyHeadersOf({shim, shim + "/include", headers, written + "/kernels", written + "/cpu"}, text))
    CompileText(text);
  ReplaceAll(key, scratch, "@");
  ReplaceAll(key, root, "~");
  key = DigestOf(key + text);
  const string group = store + '/' + key.substr(0, 2);
  const string kept = group + '/' + key;
  const auto restore = [&] {
    if (!Exists(kept)) return;
    if (!output.empty() && !CopyFiles(kept + "/files", scratch, "")) std::exit(1);
    WriteAll(2, ReadFile(kept + "/messages"));
    std::exit(0);
  };
  restore();
  for (const string& folder : {store + "/locks", group}) mkdir(folder.c_str(), 0777);
  // Who asks for the same text at the same time waits here.
  const int lock = open((store + "/locks/" + key.substr(0, 3)).c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  flock(lock, LOCK_EX);
  restore();
  string fresh = store + "/new.XXXXXX";
  if (mkdtemp(fresh.data()) == nullptr || mkdir((fresh + "/files").c_str(), 0777) != 0) CompileText(text);
  const auto compile = [&](const string& input) {
    const pid_t child = fork();
    if (child == 0) {
      dup2(open((fresh + "/messages").c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666), 2);
      CompileText(input);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return status;
  };
  const string quick = output.empty() ? "" : WithPrecompiledHead(text, heads);
  int status = quick.empty() ? -1 : compile(quick);
  // Messages about the text itself, where it is rejected.
  if (status != 0) status = compile(text);
  WriteAll(2, ReadFile(fresh + "/messages"));
  const string stem = output.substr(output.rfind('/') + 1);
  const string head = stem.substr(0, stem.rfind(".so")) + '.';
  const bool is_copied = status == 0 && (output.empty() || CopyFiles(scratch, fresh + "/files", head));
  if (!is_copied || rename(fresh.c_str(), kept.c_str()) != 0) {
    unlink((fresh + "/messages").c_str());
    for (const string& folder : {fresh + "/files", fresh}) rmdir(folder.c_str());
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
