#!/usr/bin/env bash
# Installs ecr from the table beside this script: downloads, checks the SHA-256, and only then makes it a program.
# Usage: install.sh [FOLDER]   (in a job $RUNNER_TEMP/ecr, else ~/.local/bin)
# ECR_VERSION chooses a version; ECR_ATTESTATION_REPOSITORY=OWNER/NAME also asks for GitHub's build attestation.
set -euo pipefail

fail() {
  if [ "${GITHUB_ACTIONS:-}" = true ]; then printf '::error::install-ecr: %s\n' "$1"; else printf 'install.sh: %s\n' "$1" >&2; fi
  exit 1
}

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
table=$here/releases.txt
[ -f "$table" ] || fail "there is no $table"

case "$(uname -s) $(uname -m)" in
  'Linux x86_64') target=linux-x64 ;;
  'Linux aarch64') target=linux-arm64 ;;
  'Darwin x86_64') target=macos-x64 ;;
  'Darwin arm64') target=macos-arm64 ;;
  *) fail "there is no ecr for $(uname -s) $(uname -m); build it with cargo build --release --locked" ;;
esac

version=${ECR_VERSION:-}
found='' sha256='' url=''
while read -r line_version line_target line_sha256 line_url _; do
  case "$line_version" in '' | '#'*) continue ;; esac
  [ "$line_target" = "$target" ] || continue
  [ -z "$version" ] || [ "$line_version" = "$version" ] || continue
  found=$line_version sha256=$line_sha256 url=$line_url
done <"$table"
[ -n "$found" ] || fail "releases.txt names no ${version:+version $version }program for $target: write a line for it (the file says how)"
[[ $sha256 =~ ^[0-9a-f]{64}$ ]] || fail "releases.txt: $found $target: the SHA-256 has to be 64 hexadecimal digits in lower case"

# Over http only from this machine, where nobody is between.
case "$url" in
  https://?*) protocol==https ;;
  http://127.0.0.1:?*) protocol==http ;;
  *) fail "releases.txt: $found $target: the address has to begin with https://" ;;
esac

if [ $# -gt 0 ]; then
  folder=$1
elif [ "${GITHUB_ACTIONS:-}" = true ]; then
  folder=${RUNNER_TEMP:?}/ecr
else
  folder=${HOME:?}/.local/bin
fi
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
scratch=$(mktemp -d "$folder/.ecr-XXXXXX")
trap 'rm -rf "$scratch"' EXIT

curl -fsSL --proto "$protocol" --proto-redir "$protocol" --retry 3 --max-time 300 --max-filesize 104857600 \
  -o "$scratch/ecr" -- "$url" || fail "$url cannot be downloaded"
if command -v sha256sum >/dev/null; then
  actual=$(sha256sum "$scratch/ecr")
else
  actual=$(shasum -a 256 "$scratch/ecr")
fi
actual=${actual%% *}
[ "$actual" = "$sha256" ] || fail "$url is not what releases.txt promises: SHA-256 $actual instead of $sha256; nothing was installed"

if [ -n "${ECR_ATTESTATION_REPOSITORY:-}" ]; then
  gh attestation verify "$scratch/ecr" --repo "$ECR_ATTESTATION_REPOSITORY" >&2 ||
    fail "GitHub has no attestation by $ECR_ATTESTATION_REPOSITORY for it; nothing was installed"
fi

chmod 755 "$scratch/ecr"
says=$("$scratch/ecr" --version) || fail "the program does not start here"
mv -f "$scratch/ecr" "$folder/ecr"
[ -z "${GITHUB_OUTPUT:-}" ] || printf 'path=%s\n' "$folder/ecr" >>"$GITHUB_OUTPUT"
printf '%s: %s, SHA-256 %s\n' "$folder/ecr" "$says" "$sha256"
