# Other programs' test suites, for tools/umem-suites.sh, bypass-suites.sh and sqlite-crash.sh, which source this in the
# repository's folder: Debian's sources and packages are fetched once into build/suites, in lists of our own.

home=$PWD
work=$home/build/suites
mkdir -p "$work"/{apt/parts,lists/partial,debs,root,src,logs}

prepare_apt() {
    export APT_CONFIG=$work/apt.conf
    cat >"$APT_CONFIG" <<-END
	Dir::Etc::sourcelist "/dev/null";
	Dir::Etc::sourceparts "$work/apt/parts";
	Dir::State::lists "$work/lists";
	Dir::Cache::pkgcache "";
	Dir::Cache::srcpkgcache "";
	APT::Sandbox::User "root";
	END
    [ -e "$work/apt/ready" ] && return
    awk 'BEGIN { RS = ""; ORS = "\n\n" }
        /URIs: [^\n]*\/debian(-security)?\/?\n/ && !/backports/ { sub(/Types: deb[^\n]*/, "Types: deb deb-src"); print }' \
        $(ls /etc/apt/sources.list.d/*.sources 2>/dev/null) /dev/null >"$work/apt/parts/debian.sources"
    cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list 2>/dev/null |
        grep -E '^deb (\[[^]]*\] )?[^ ]*/debian(-security)?/? ' | grep -v backports |
        sed 'p; s/^deb /deb-src /' >"$work/apt/parts/debian.list"
    apt-get -qq update && touch "$work/apt/ready"
}

# Unpacks a package's files into $work/root; nothing is installed.
unpack() {
    local package version
    for package in "$@"; do
        [ -e "$work/debs/$package.done" ] && continue
        version=$(apt-cache madison "$package" | awk -F' *[|] *' '/Packages/ { print $2; exit }')
        (cd "$work/debs" && apt-get -qq download "$package=$version") >/dev/null || return 1
        dpkg-deb -x "$work"/debs/"$package"_*.deb "$work/root" && touch "$work/debs/$package.done" || return 1
    done
}

# Unpacks a package's source, of the newest version that the archive still has, as $work/src/NAME.
source_of() {
    local name=$1 release
    [ -e "$work/src/$name" ] && return
    release=$(. /etc/os-release && echo "$VERSION_CODENAME")
    rm -rf "$work/src/$name.fetched" && mkdir -p "$work/src/$name.fetched"
    (
        cd "$work/src/$name.fetched" || exit 1
        apt-get -qq source --download-only "$name" 2>/dev/null ||
            apt-get -qq source --download-only "$name/$release" >/dev/null || exit 1
        dpkg-source -x --no-check --skip-patches ./*.dsc tree >/dev/null
    ) && mv "$work/src/$name.fetched/tree" "$work/src/$name"
}

# Builds what runs SQLite's own tests, $work/sqlite/testfixture, from Debian's source.
sqlite_testfixture() {
    source_of sqlite3 || return 1
    mkdir -p "$work/sqlite"
    [ -x "$work/sqlite/testfixture" ] && return
    (cd "$work/sqlite" && "$work/src/sqlite3/configure" --quiet --disable-readline CFLAGS=-O1 &&
        make -s testfixture) >"$work/logs/sqlite-build" 2>&1
}
