//! What programs need that no header tells: their data, their folders, and the
//! arguments that make sense in a machine of one's own.

use std::fs;
use std::path::{Path, PathBuf};

use super::closure::Closure;
use super::{Image, PackError};

/// Knowledge about programs of one name.
struct Profile {
    /// Names of programs; a `*` at the end stands for anything.
    programs: &'static [&'static str],
    /// Files and folders of the host; a `*` at the end of the last part stands for
    /// anything. What is not there is left out.
    paths: &'static [&'static str],
    /// Parts of these that nobody needs.
    without: &'static [&'static str],
    /// Empty folders.
    folders: &'static [&'static str],
    /// Symbolic links as (path, target).
    links: &'static [(&'static str, &'static str)],
    /// Arguments for a user who gives none.
    arguments: &'static [&'static str],
}

const NOTHING: Profile = Profile {
    programs: &[],
    paths: &[],
    without: &[],
    folders: &[],
    links: &[],
    arguments: &[],
};

static PROFILES: [Profile; 6] = [
    Profile {
        programs: &["redis-server", "valkey-server"],
        // A machine's port is reached only through -p, which is the user's decision.
        arguments: &["--protected-mode", "no"],
        ..NOTHING
    },
    Profile {
        programs: &["memcached"],
        arguments: &["-u", "nobody"],
        ..NOTHING
    },
    Profile {
        programs: &["nginx"],
        paths: &[
            "/etc/nginx",
            "/usr/share/nginx",
            "/usr/lib/nginx/modules",
            "/var/www/html",
        ],
        folders: &[
            "/var/log/nginx",
            "/var/lib/nginx/body",
            "/var/lib/nginx/proxy",
            "/var/lib/nginx/fastcgi",
            "/var/lib/nginx/uwsgi",
            "/var/lib/nginx/scgi",
        ],
        arguments: &["-g", "daemon off;"],
        ..NOTHING
    },
    Profile {
        programs: &["python3*"],
        paths: &[
            "/usr/lib/python3*",
            "/etc/python3*",
            "/etc/mime.types",
            "/etc/ssl/certs/ca-certificates.crt",
        ],
        without: &["test", "idlelib", "lib2to3", "ensurepip", "turtledemo"],
        ..NOTHING
    },
    Profile {
        programs: &["node", "nodejs"],
        // Debian's build loads parts of itself from here.
        paths: &[
            "/usr/share/nodejs/acorn",
            "/usr/share/nodejs/acorn-walk",
            "/usr/share/nodejs/cjs-module-lexer",
            "/usr/share/nodejs/undici",
        ],
        ..NOTHING
    },
    Profile {
        programs: &["busybox"],
        links: &[("/bin/sh", "/bin/busybox")],
        ..NOTHING
    },
];

/// Adds what the profile of the program `name` lists.
pub fn add(image: &mut Image, name: &str) -> Result<(), PackError> {
    let Some(profile) = find(name) else {
        return Ok(());
    };
    let mut plugins = Vec::new();
    for path in profile.paths.iter().flat_map(|pattern| expand(pattern)) {
        image.add_same(&path)?;
        for part in profile.without {
            image.remove(&path.join(part));
        }
        plugins.extend(plugins_below(image, &path));
    }
    let mut closure = Closure::new(image);
    for plugin in plugins {
        closure.add_plugin(&plugin)?;
    }
    for folder in profile.folders {
        image.add_folder(folder, 0o755);
    }
    for (path, target) in profile.links {
        image.add_link(path, *target);
    }
    Ok(())
}

/// The arguments for the program `name` if its user gives none.
pub fn default_arguments(name: &str) -> &'static [&'static str] {
    find(name).map_or(&[], |profile| profile.arguments)
}

fn find(name: &str) -> Option<&'static Profile> {
    PROFILES.iter().find(|profile| {
        profile
            .programs
            .iter()
            .any(|pattern| matches(pattern, name))
    })
}

fn matches(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => pattern == name,
    }
}

/// The paths of the host that a pattern stands for.
fn expand(pattern: &str) -> Vec<PathBuf> {
    let path = Path::new(pattern);
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return vec![];
    };
    let name = name.to_string_lossy();
    let listing = fs::read_dir(folder).into_iter().flatten().flatten();
    let found = listing.filter(|entry| matches(&name, &entry.file_name().to_string_lossy()));
    found
        .map(|entry| entry.path())
        .filter(|path| path.exists())
        .collect()
}

/// Shared objects below a path of the image; they have libraries of their own.
fn plugins_below(image: &Image, path: &Path) -> Vec<PathBuf> {
    let files = image
        .host_files()
        .filter(|(guest, _)| guest.starts_with(path));
    let objects = files.filter(|(guest, _)| guest.extension().is_some_and(|ext| ext == "so"));
    objects.map(|(_, host)| host.to_path_buf()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_versions_have_the_profile_of_the_family() {
        assert!(find("python3.11").is_some());
        assert!(find("python2").is_none());
        assert_eq!(default_arguments("nginx"), ["-g", "daemon off;"]);
        assert!(default_arguments("unheard-of").is_empty());
    }

    #[test]
    fn patterns_stand_for_what_is_there() {
        assert!(expand("/etc/passw*").contains(&PathBuf::from("/etc/passwd")));
        assert!(expand("/nowhere/x*").is_empty());
    }
}
