//! The workspace as cargo sees it.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;

/// A crate of the workspace.
#[derive(Clone, Debug)]
pub struct Package {
    /// Its name.
    pub name: String,
    /// Its folder, from the repository's root.
    pub folder: PathBuf,
    /// Crates of this repository that it uses outside of its tests.
    pub uses: Vec<String>,
    /// Root files of its library and programs, from the repository's root.
    pub roots: Vec<PathBuf>,
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<RawPackage>,
    workspace_root: PathBuf,
}

#[derive(Deserialize)]
struct RawPackage {
    name: String,
    manifest_path: PathBuf,
    dependencies: Vec<Dependency>,
    targets: Vec<Target>,
}

#[derive(Deserialize)]
struct Dependency {
    name: String,
    kind: Option<String>,
    path: Option<PathBuf>,
}

#[derive(Deserialize)]
struct Target {
    kind: Vec<String>,
    src_path: PathBuf,
}

/// The crates of the workspace at `root`.
pub fn packages(root: &Path) -> Result<Vec<Package>, String> {
    let output = Command::new("cargo")
        .args(["metadata", "--format-version=1", "--no-deps", "--offline"])
        .current_dir(root)
        .output()
        .map_err(|error| format!("cargo does not start ({error}): install Rust."))?;
    if !output.status.success() {
        let reason = String::from_utf8_lossy(&output.stderr);
        return Err(format!("cargo cannot read the workspace: {reason}"));
    }
    parse(&output.stdout)
}

fn parse(json: &[u8]) -> Result<Vec<Package>, String> {
    let metadata: Metadata =
        serde_json::from_slice(json).map_err(|error| format!("cargo metadata: {error}"))?;
    let from_root = |path: &Path| {
        let inside = path.strip_prefix(&metadata.workspace_root);
        inside.unwrap_or(path).to_path_buf()
    };
    Ok(metadata
        .packages
        .iter()
        .map(|package| Package {
            name: package.name.clone(),
            folder: from_root(package.manifest_path.parent().unwrap_or(Path::new(""))),
            uses: package
                .dependencies
                .iter()
                .filter(|used| used.path.is_some() && used.kind.as_deref() != Some("dev"))
                .map(|used| used.name.clone())
                .collect(),
            roots: package
                .targets
                .iter()
                .filter(|target| {
                    target
                        .kind
                        .iter()
                        .any(|kind| kind == "lib" || kind == "bin")
                })
                .map(|target| from_root(&target.src_path))
                .collect(),
        })
        .collect())
}
