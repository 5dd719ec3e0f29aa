# The rest of the script that kept-compiler.ts writes: g++ for kernels, which come on standard input and need the shim's headers alone.
# Anything else is left to the compiler, and so is what it rejects: only what succeeds is kept. `compiler` is its path: nvcc, which also
# calls g++, changes PATH.
output= value= input=
for argument do
  case $value in
    output) output=$argument ;;
    folder) case $argument in "$shim" | "$shim"/include | "$headers" | "$short"/*) ;; *) exec "$compiler" "$@" ;; esac ;;
  esac
  [ -n "$value" ] && { value=; continue; }
  case $argument in
    -o) value=output ;;
    -I | -iquote) value=folder ;;
    -x) value=language ;;
    -) input=yes ;;
    -E | -g* | -I* | -i* | -B* | -M* | -specs* | @* | [!-]*) exec "$compiler" "$@" ;;
  esac
done
[ -n "$input" ] && [ "${TMPDIR:-}" ] || exec "$compiler" "$@"
scratch=$TMPDIR
case $output in '' | "$scratch"/*) ;; *) exec "$compiler" "$@" ;; esac

text=$scratch/kept-input.$$
cat > "$text" || exit
given() { "$compiler" "$@" < "$text"; status=$?; rm -f "$text"; exit $status; }
# Each header must be one of the shim's, and none may be in the current folder, where the compiler looks first.
set_of_headers=$(sed -n 's/^[ \t]*#[ \t]*include[ \t]*[<"]\([^<>"]*\)[>"].*/\1/p' "$text")
[ "$(grep -c include "$text")" = "$(printf '%s\n' "$set_of_headers" | grep -c .)" ] || given "$@"
for header in $set_of_headers; do
  [ -e "$header" ] && given "$@"
  for folder in "$shim" "$shim/include" "$headers" "$short/kernels" "$short/cpu" ""; do
    [ -n "$folder" ] || given "$@"
    [ -e "$folder/$header" ] && break
  done
done

key=$({ printf '%s\n' "$@" | sed "s|$scratch|@|g; s|$root|~|g"; cat "$text"; } | sha256sum)
key=${key%% *}
kept=$store/$(printf %.2s "$key")/$key
restored() {
  [ -d "$kept" ] || return 1
  rm -f "$text"
  [ -z "$output" ] || cp "$kept"/files/* "$scratch"/ || exit
  cat "$kept"/messages >&2
  exit 0
}
restored
mkdir -p "$store/locks" "${kept%/*}"
# Who asks for the same text at the same time waits here.
exec 9> "$store/locks/$(printf %.3s "$key")"
flock 9
restored
new=$(mktemp -d "$store/new.XXXXXX") || given "$@"
mkdir "$new/files"
"$compiler" "$@" < "$text" 2> "$new/messages" 9>&-
status=$?
rm -f "$text"
cat "$new/messages" >&2
if [ $status = 0 ]; then
  base=${output##*/}
  { [ -z "$output" ] || cp "$scratch/${base%.so}".* "$new/files"/; } 2> /dev/null && mv -T "$new" "$kept" 2> /dev/null
fi
rm -rf "$new"
exit $status
