//! Container images of Debian packages, made of what is installed on this host.
//!
//! An image has a layer with the files of a few packages and of all that these depend on, as dpkg's records name
//! them (`/var/lib/dpkg`, deb-status(5)), and what their scripts made of it: accounts, alternatives, the
//! linker's cache. Files that a test has written lie in a layer above. It is written as an OCI layout by hand, with layers as plain
//! `tar`, so making one takes about as long as copying the files.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A shell and what scripts call.
pub const BASE: &[&str] = &[
    "base-files",
    "bash",
    "dash",
    "coreutils",
    "sed",
    "grep",
    "util-linux",
    "bsdutils",
];
/// What no package lists, as scripts made it.
const MADE: &[&str] = &[
    "/bin",
    "/lib",
    "/lib64",
    "/sbin",
    "/etc/passwd",
    "/etc/group",
    "/etc/nsswitch.conf",
    "/etc/ld.so.cache",
    "/etc/alternatives",
    "/usr/local",
    "/tmp",
    "/var/tmp",
    "/root",
];
/// Folders of packages that scripts filled.
const MADE_WHOLE: &[&str] = &[
    "/etc/alternatives",
    "/etc/pam.d",
    "/etc/apache2/conf-enabled",
    "/etc/apache2/mods-enabled",
    "/etc/apache2/sites-enabled",
    "/etc/php/8.2/apache2/conf.d",
    "/etc/php/8.2/mods-available",
];
/// What programs do not read.
const LEFT_OUT: &[&str] = &[
    "/usr/share/doc/",
    "/usr/share/man/",
    "/usr/share/locale/",
    "/usr/share/javascript/moment-timezone",
];

/// What an image is made of.
#[derive(Clone, Copy, Default)]
pub struct Contents<'a> {
    /// Packages, which come with all that these need.
    pub packages: &'a [&'a str],
    /// Further files and folders of this host, without what is in them.
    pub others: &'a [&'a str],
    /// Paths and texts of files above, all of which may be executed.
    pub files: &'a [(&'a str, &'a str)],
    /// What it says of its program: the fields of `config`, as JSON.
    pub config: &'a str,
}

/// Makes an image in `folder` and says its name.
pub fn make(folder: &Path, contents: &Contents<'_>) -> Result<String, String> {
    let blobs = folder.join("blobs/sha256");
    fs::create_dir_all(&blobs).map_err(|error| error.to_string())?;
    let mut layers = vec![keep(&blobs, &pack(folder, contents)?)?];
    if !contents.files.is_empty() {
        layers.push(keep(&blobs, &pack_written(folder, contents.files)?)?);
    }
    let each = |say: &dyn Fn(&Blob) -> String| layers.iter().map(say).collect::<Vec<_>>().join(",");
    let settings = format!(
        r#"{{"architecture":"amd64","os":"linux","config":{},"rootfs":{{"type":"layers","diff_ids":[{}]}}}}"#,
        contents.config,
        each(&|layer| format!("\"sha256:{}\"", layer.digest)),
    );
    let settings = keep_text(folder, &blobs, &settings)?;
    let manifest = format!(
        r#"{{"schemaVersion":2,"mediaType":"{MANIFEST}","config":{},"layers":[{}]}}"#,
        settings.descriptor("application/vnd.oci.image.config.v1+json"),
        each(&|layer| layer.descriptor("application/vnd.oci.image.layer.v1.tar")),
    );
    let manifest = keep_text(folder, &blobs, &manifest)?;
    let index = format!(
        r#"{{"schemaVersion":2,"manifests":[{}]}}"#,
        manifest.descriptor(MANIFEST)
    );
    fs::write(
        folder.join("oci-layout"),
        r#"{"imageLayoutVersion":"1.0.0"}"#,
    )
    .and_then(|()| fs::write(folder.join("index.json"), index))
    .map_err(|error| error.to_string())?;
    Ok(format!("oci:{}", folder.display()))
}

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";

/// A string of JSON.
pub fn quoted(text: &str) -> String {
    let escape = |character: char| match character {
        '"' => "\\\"".into(),
        '\\' => "\\\\".into(),
        character if character < ' ' => format!("\\u{:04x}", u32::from(character)),
        character => character.to_string(),
    };
    format!("\"{}\"", text.chars().map(escape).collect::<String>())
}

/// A blob of the layout.
struct Blob {
    digest: String,
    bytes: u64,
}

impl Blob {
    fn descriptor(&self, media_type: &str) -> String {
        format!(
            r#"{{"mediaType":"{media_type}","digest":"sha256:{}","size":{}}}"#,
            self.digest, self.bytes
        )
    }
}

fn keep_text(folder: &Path, blobs: &Path, text: &str) -> Result<Blob, String> {
    let file = folder.join("text");
    fs::write(&file, text).map_err(|error| error.to_string())?;
    keep(blobs, &file)
}

/// Moves a file among the blobs.
fn keep(blobs: &Path, file: &Path) -> Result<Blob, String> {
    let said = Command::new("sha256sum").arg(file).output();
    let said = said.map_err(|error| format!("sha256sum: {error}"))?;
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    let digest = said.split_whitespace().next().unwrap_or_default();
    let digest = digest.trim_start_matches('\\').to_string();
    let bytes = fs::metadata(file).map_err(|error| error.to_string())?.len();
    fs::rename(file, blobs.join(&digest)).map_err(|error| error.to_string())?;
    Ok(Blob { digest, bytes })
}

/// Writes the files of packages as an archive.
fn pack(folder: &Path, contents: &Contents<'_>) -> Result<PathBuf, String> {
    let (list, layer) = (folder.join("list"), folder.join("layer.tar"));
    let files = files(contents)?;
    let lines: Vec<&str> = files
        .iter()
        .map(|path| path.trim_start_matches('/'))
        .collect();
    fs::write(&list, lines.join("\n")).map_err(|error| error.to_string())?;
    let mut tar = tar(Path::new("/"), &layer);
    tar.arg("--no-recursion").arg("--files-from").arg(&list);
    succeed(&mut tar)?;
    fs::remove_file(list).map_err(|error| error.to_string())?;
    Ok(layer)
}

/// Writes files of a test as an archive.
fn pack_written(folder: &Path, files: &[(&str, &str)]) -> Result<PathBuf, String> {
    let (above, layer) = (folder.join("above"), folder.join("layer.tar"));
    for (path, text) in files {
        let file = above.join(path.trim_start_matches('/'));
        fs::create_dir_all(file.parent().unwrap_or(&above))
            .and_then(|()| fs::write(&file, text))
            .and_then(|()| fs::set_permissions(&file, Permissions::from_mode(0o755)))
            .map_err(|error| format!("{path}: {error}"))?;
    }
    // Only what was written: folders are the packages' own.
    let paths = files.iter().map(|(path, _)| path.trim_start_matches('/'));
    let mut tar = tar(&above, &layer);
    succeed(tar.args(["--owner=0", "--group=0"]).args(paths))?;
    fs::remove_dir_all(above).map_err(|error| error.to_string())?;
    Ok(layer)
}

/// Writes `archive` of what is named behind, below `folder`.
fn tar(folder: &Path, archive: &Path) -> Command {
    let mut tar = Command::new("tar");
    tar.arg("--create").arg("--directory").arg(folder);
    tar.arg("--file").arg(archive);
    tar
}

fn succeed(command: &mut Command) -> Result<(), String> {
    let output = command
        .output()
        .map_err(|error| format!("{command:?}: {error}"))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(format!("tar: {}", String::from_utf8_lossy(&output.stderr))),
    }
}

/// The paths of all that packages have and need, in order; folders come before what is in them.
fn files(contents: &Contents<'_>) -> Result<BTreeSet<String>, String> {
    let wanted = Records::read()?.with_needed(contents.packages)?;
    let made = MADE.iter().chain(contents.others);
    let mut files: BTreeSet<String> = made.filter_map(|path| in_image(path)).collect();
    files.extend(chosen());
    for (package, is_multi) in wanted {
        let architecture = if is_multi { ":amd64" } else { "" };
        let list = format!("/var/lib/dpkg/info/{package}{architecture}.list");
        let list = fs::read_to_string(&list).map_err(|error| format!("{list}: {error}"))?;
        files.extend(list.lines().filter_map(in_image));
    }
    for folder in MADE_WHOLE
        .iter()
        .filter(|folder| files.contains(**folder))
        .collect::<Vec<_>>()
    {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        files.extend(entries.map(|entry| entry.path().display().to_string()));
    }
    Ok(files)
}

/// Commands that are one of several programs (update-alternatives(1)), such as `awk` and `java`.
fn chosen() -> impl Iterator<Item = String> {
    let entries = fs::read_dir("/usr/bin").into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    let is_chosen = |path: &PathBuf| {
        fs::read_link(path).is_ok_and(|target| target.starts_with("/etc/alternatives"))
    };
    paths
        .filter(is_chosen)
        .map(|path| path.display().to_string())
}

/// Where a file of a package is: Debian's `/bin` and its like are links to folders in `/usr`.
fn in_image(path: &str) -> Option<String> {
    let is_merged = ["/bin/", "/lib/", "/lib64/", "/sbin/"]
        .iter()
        .any(|folder| path.starts_with(folder));
    let path = if is_merged {
        format!("/usr{path}")
    } else {
        path.into()
    };
    let is_left_out = LEFT_OUT.iter().any(|folder| path.starts_with(folder));
    let is_there = || path != "/." && fs::symlink_metadata(&path).is_ok();
    (!is_left_out && is_there()).then_some(path)
}

/// What dpkg knows of a package.
#[derive(Default)]
struct Record {
    is_multi: bool,
    /// For each need the packages of which one is enough.
    needs: Vec<Vec<String>>,
}

/// Installed packages by name.
struct Records {
    packages: BTreeMap<String, Record>,
    /// Who provides what is no package.
    providers: BTreeMap<String, String>,
}

impl Records {
    fn read() -> Result<Self, String> {
        let status =
            fs::read_to_string("/var/lib/dpkg/status").map_err(|error| error.to_string())?;
        let mut records = Self {
            packages: BTreeMap::new(),
            providers: BTreeMap::new(),
        };
        for paragraph in status.split("\n\n") {
            records.add(paragraph);
        }
        Ok(records)
    }

    fn add(&mut self, paragraph: &str) {
        let field = |name: &str| {
            let mut lines = paragraph.lines();
            lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
        };
        let is_installed = field("Status").is_some_and(|status| status.ends_with(" installed"));
        let Some(package) = field("Package").filter(|_| is_installed) else {
            return;
        };
        let needs = ["Depends", "Pre-Depends"]
            .iter()
            .filter_map(|name| field(name));
        let record = Record {
            is_multi: field("Multi-Arch") == Some("same"),
            needs: needs
                .flat_map(|needs| needs.split(',').map(alternatives))
                .collect(),
        };
        for name in alternatives(&field("Provides").unwrap_or_default().replace(',', "|")) {
            self.providers.insert(name, package.into());
        }
        self.packages.insert(package.into(), record);
    }

    /// These packages and all that they need, each with whether its records name the architecture.
    fn with_needed(&self, packages: &[&str]) -> Result<BTreeMap<String, bool>, String> {
        let mut wanted = BTreeMap::new();
        let mut left: Vec<&str> = packages.to_vec();
        while let Some(name) = left.pop() {
            let name = self
                .providers
                .get(name)
                .filter(|_| !self.packages.contains_key(name))
                .map_or(name, |provider| provider);
            let record = self
                .packages
                .get(name)
                .ok_or_else(|| format!("the package {name} is not installed"))?;
            if wanted.insert(name.to_string(), record.is_multi).is_none() {
                let is_there = |name: &&String| {
                    self.packages.contains_key(*name) || self.providers.contains_key(*name)
                };
                let chosen = record
                    .needs
                    .iter()
                    .filter_map(|any| any.iter().find(is_there));
                left.extend(chosen.map(String::as_str));
            }
        }
        Ok(wanted)
    }
}

/// The names in `a (>= 1) | b:any`.
fn alternatives(need: &str) -> Vec<String> {
    let name = |one: &str| {
        let name = one.trim().split([' ', ':']).next()?;
        (!name.is_empty()).then(|| name.to_string())
    };
    need.split('|').filter_map(name).collect()
}
