//! After a packed program has failed: which files it looked for in vain that this host has, and the flag that brings each.
//!
//! Packing follows what headers say, and rules for programs that are known; what a program opens by a name that it
//! makes up is nowhere to be read. The machine's kernel notes which paths led nowhere. Of these a few are on this
//! host, and one of them is mostly the reason of the failure.
//!
//! A file's flag brings the topmost folder that the image has not, as a program that lacks one file of a folder lacks
//! the others; but no folder that is everybody's, such as `/usr/share`. A file in a folder that the image has comes alone:
//! a mount would cover what is there.
//!
//! Left out: what is below a mount of the user's, what the user may not read, empty folders, and files that the C
//! library looks for and does without.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use qemu::report::Report;

use crate::commands::shell_quoted;
use crate::flags::RunFlags;
use crate::pack::Image;

/// Files that nobody misses.
const UNIMPORTANT: [&str; 6] = [
    "/etc/gai.conf",
    "/etc/host.conf",
    "/etc/ld.so.preload",
    "/usr/lib/locale",
    "/usr/local/lib/locale",
    "/usr/share/locale",
];
/// Folders whose folders are everybody's.
const DEEP: [&str; 2] = ["/usr", "/var"];
/// Flags that are shown; who lacks more has the host's root, or an image.
const SHOWN_MAX: usize = 5;

/// What is known of a packed program's machine.
#[derive(Debug)]
pub struct Search {
    image: Image,
    /// Where something is mounted over the image.
    mounts: Vec<PathBuf>,
}

/// A flag, and the files for which it is.
#[derive(Debug, PartialEq, Eq)]
struct Hint {
    brought: PathBuf,
    files: Vec<PathBuf>,
}

impl Search {
    /// Of a machine with `image` that `flags` started.
    pub fn of(image: Image, flags: &RunFlags) -> Self {
        let volumes = flags.volume.iter().map(|mount| mount.guest.clone());
        let memory = flags.root.tmpfs().into_iter().map(|tmpfs| tmpfs.guest);
        let mounts = volumes.chain(memory).map(PathBuf::from).collect();
        Self { image, mounts }
    }

    /// Says it, if the program has failed.
    pub fn tell(&self, report: &Report, program: &str) {
        if report.has_failed() {
            let sentences = sentences(&self.hints(&report.absent), program);
            sentences
                .iter()
                .for_each(|line| eprintln!("sietch: {line}"));
        }
    }

    fn hints(&self, absent: &[PathBuf]) -> Vec<Hint> {
        let mut hints: Vec<Hint> = Vec::new();
        for path in absent {
            let file = self.image.place(path);
            if !self.is_missed(&file) {
                continue;
            }
            let brought = self.brought(&file);
            match hints.iter_mut().find(|hint| hint.brought == brought) {
                Some(hint) if hint.files.contains(&file) => {}
                Some(hint) => hint.files.push(file),
                None => hints.push(Hint {
                    brought,
                    files: vec![file],
                }),
            }
        }
        hints
    }

    /// Whether the host has what the image has not.
    fn is_missed(&self, file: &Path) -> bool {
        let is_below = |folder: &Path| file.starts_with(folder);
        let is_covered = self.mounts.iter().any(|mount| is_below(mount));
        let is_unimportant = UNIMPORTANT.iter().any(|path| is_below(Path::new(path)));
        let is_everybodys = file.is_dir() && depth(file) < least_depth(file);
        !is_covered
            && !is_unimportant
            && !is_everybodys
            && self.image.resolve(file).is_none()
            && is_there(file)
    }

    /// The topmost folder on the way to `file` that the image has not, if it is not everybody's.
    fn brought(&self, file: &Path) -> PathBuf {
        let least = least_depth(file);
        let mut candidates: Vec<&Path> = file.ancestors().collect();
        candidates.reverse();
        let mut candidates = candidates.into_iter();
        let found = candidates.find(|path| depth(path) >= least && !self.image.has_folder(path));
        found.unwrap_or(file).to_path_buf()
    }
}

/// How many names below the root a path is.
fn depth(path: &Path) -> usize {
    path.components().count().saturating_sub(1)
}

/// Of a folder on the way to `file` that is not everybody's.
fn least_depth(file: &Path) -> usize {
    match DEEP.iter().any(|folder| file.starts_with(folder)) {
        true => 3,
        false => 2,
    }
}

/// Whether the host has a file that its user may read, or a folder with something in it.
fn is_there(path: &Path) -> bool {
    match fs::metadata(path) {
        Ok(metadata) if metadata.is_file() => File::open(path).is_ok(),
        Ok(metadata) if metadata.is_dir() => {
            fs::read_dir(path).is_ok_and(|mut listing| listing.next().is_some())
        }
        _ => false,
    }
}

fn sentences(hints: &[Hint], program: &str) -> Vec<String> {
    let mut sentences: Vec<String> = hints
        .iter()
        .take(SHOWN_MAX)
        .map(|hint| sentence(hint, program))
        .collect();
    if let Some(more @ 1..) = hints.len().checked_sub(SHOWN_MAX) {
        sentences.push(format!(
            "... and for files of {more} other places: --host-root runs {program} with all that this host has."
        ));
    }
    sentences
}

fn sentence(hint: &Hint, program: &str) -> String {
    let first = hint.files.first().unwrap_or(&hint.brought).display();
    let (others, them) = match hint.files.len() {
        0 | 1 => (String::new(), "it"),
        2 => (" and another file".into(), "them"),
        count => (format!(" and {} others", count - 1), "them"),
    };
    let path = hint.brought.display();
    let flag = shell_quoted(&format!("{path}:{path}:ro"));
    format!(
        "{program} looked in vain for {first}{others}, which this host has: -v {flag} brings {them}."
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder of the host with files in it, for one test.
    struct Host(PathBuf);

    impl Host {
        fn new(name: &str, files: &[&str]) -> Self {
            let folder =
                std::env::temp_dir().join(format!("sietch-absent-{name}-{}", std::process::id()));
            for file in files {
                let path = folder.join(file);
                fs::create_dir_all(path.parent().expect("a folder")).expect("made");
                fs::write(path, "x").expect("written");
            }
            let folder = fs::canonicalize(folder).expect("there");
            Self(folder)
        }

        fn path(&self, name: &str) -> PathBuf {
            self.0.join(name)
        }
    }

    impl Drop for Host {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn search(image: Image) -> Search {
        Search {
            image,
            mounts: vec![],
        }
    }

    #[test]
    fn a_folder_that_the_image_has_not_is_brought_whole() {
        let host = Host::new("whole", &["conf/mods/a", "conf/b", "empty/x"]);
        let mut image = Image::new();
        image.add_folder(&host.0, 0o755);
        fs::remove_file(host.path("empty/x")).expect("removed");
        let absent =
            ["conf/mods/a", "conf/b", "conf/none", "none", "empty"].map(|name| host.path(name));
        let hints = search(image).hints(&absent);
        let whole = Hint {
            brought: host.path("conf"),
            files: vec![host.path("conf/mods/a"), host.path("conf/b")],
        };
        assert_eq!(hints, [whole]);
        let path = host.path("conf").display().to_string();
        assert_eq!(
            sentences(&hints, "httpd"),
            [format!(
                "httpd looked in vain for {path}/mods/a and another file, which this host has: -v {path}:{path}:ro brings them."
            )]
        );
    }

    #[test]
    fn a_file_of_a_folder_that_the_image_has_comes_alone() {
        let host = Host::new("alone", &["etc/a", "etc/b"]);
        let mut image = Image::new();
        image.add_bytes(host.path("etc/b"), 0o644, "x");
        let hints = search(image).hints(&[host.path("etc/a"), host.path("etc/b")]);
        let brought: Vec<PathBuf> = hints.into_iter().map(|hint| hint.brought).collect();
        assert_eq!(brought, [host.path("etc/a")]);
    }

    #[test]
    fn what_is_below_a_mount_is_the_users_affair() {
        let host = Host::new("mounted", &["data/a"]);
        let search = Search {
            image: Image::new(),
            mounts: vec![host.path("data")],
        };
        assert!(search.hints(&[host.path("data/a")]).is_empty());
    }

    #[test]
    fn no_folder_is_brought_that_is_everybodys() {
        let search = search(Image::new());
        assert!(!search.is_missed(Path::new("/usr/lib")));
        let brought = |path: &str| search.brought(Path::new(path)).display().to_string();
        assert_eq!(brought("/usr/share/perl5/x/y.pm"), "/usr/share/perl5");
        assert_eq!(brought("/etc/apache2/mods/x"), "/etc/apache2");
        assert_eq!(brought("/usr/bin/git"), "/usr/bin/git");
        assert_eq!(brought("/x"), "/x");
    }

    #[test]
    fn who_lacks_much_is_told_of_the_hosts_root() {
        let hint = |number: usize| Hint {
            brought: format!("/a/{number}").into(),
            files: vec![format!("/a/{number}/x").into(); 3],
        };
        let hints: Vec<Hint> = (0..SHOWN_MAX + 2).map(hint).collect();
        let sentences = sentences(&hints, "x");
        assert_eq!(sentences.len(), SHOWN_MAX + 1);
        assert!(sentences[0].contains("/a/0/x and 2 others"));
        assert!(sentences[SHOWN_MAX].contains("2 other places: --host-root"));
    }
}
