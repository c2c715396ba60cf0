# Sourced: what this machine's apt knows of Debian, for mmdebstrap, which does not read apt's configuration itself.
# Sets: keyring, mirror (NUMAKIN_MIRROR, or the first Debian archive in apt's sources), aptopts (arguments for mmdebstrap).
# Needs die() of the script that sources it.
PATH=$PATH:/usr/sbin:/sbin
export LC_ALL=C

[ "$(id -u)" = 0 ] || die "must be root: the files of a Debian system belong to root"
for tool in mmdebstrap apt-get apt-config flock sha256sum; do
    command -v "$tool" >/dev/null || die "no $tool: apt-get install mmdebstrap debian-archive-keyring"
done
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
[ -r "$keyring" ] || die "no $keyring: apt-get install debian-archive-keyring"

mirror=${NUMAKIN_MIRROR:-$(apt-get indextargets --format '$(REPO_URI) $(ORIGIN)/$(LABEL)' \
    'Created-By: Packages' | awk '$2 == "Debian/Debian" { print $1; exit }')}
[ -n "$mirror" ] || die "apt knows no Debian mirror here: set NUMAKIN_MIRROR"

aptopts=(--aptopt='APT::Install-Recommends "false"')
for key in Acquire::http::Proxy Acquire::https::Proxy Acquire::Check-Valid-Until; do
    value=''; eval "$(apt-config shell value "$key")"
    [ -z "$value" ] || aptopts+=(--aptopt="$key \"$value\"")
done
# Nobody reads manuals in there.
dpkgopts=(--dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*'
          --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-include=/usr/share/doc/*/copyright')
