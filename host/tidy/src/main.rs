//! Lints the repository for what rustc and clippy cannot know.
//!
//! Which crate may use which (`layers`), where `unsafe` may be written and what
//! must stand beside it (`islands`, `lines`), what must not be written at all
//! (`lines`), what is global without a reason (`globals`), what a script cannot fail by (`scripts`), where the kernel may grow without
//! asking (`growth`), what may only shrink (`ratchet`), that documents name files that exist
//! (`documents`) and that commits say why (`subjects`). Each finding is one sentence with the way
//! out, in the form `file:line: sentence`, so editors can jump to it.
//!
//! `tidy --frames KERNEL` reads a kernel that was built instead: what its functions take of a stack (`frames`).
//!
//! The lints read text, not syntax trees: `source` blanks comments and strings
//! first, which is all the precision that these rules need.

#![forbid(unsafe_code)]

mod cycles;
mod documents;
mod finding;
mod frames;
mod functions;
mod globals;
mod growth;
mod imports;
mod islands;
mod layers;
mod lines;
mod metadata;
mod ratchet;
mod scripts;
mod source;
mod subjects;

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use finding::Finding;

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    let checked = match (words.next().as_deref(), words.next()) {
        (None, _) => check(Path::new(".")),
        (Some("--frames"), Some(kernel)) => frames::check(Path::new(&kernel)),
        _ => Err("usage: tidy [--frames KERNEL]".to_owned()),
    };
    match checked {
        Ok(findings) if findings.is_empty() => ExitCode::SUCCESS,
        Ok(findings) => {
            let lines: Vec<String> = findings.iter().map(Finding::to_string).collect();
            // Nobody reads on: then there is nobody to tell.
            let _ = writeln!(
                io::stdout(),
                "{}\ntidy: {} findings",
                lines.join("\n"),
                findings.len()
            );
            ExitCode::FAILURE
        }
        Err(reason) => {
            eprintln!("tidy: {reason}");
            ExitCode::FAILURE
        }
    }
}

/// All findings in the repository whose root is `root`.
fn check(root: &Path) -> Result<Vec<Finding>, String> {
    let packages = metadata::packages(root)?;
    let rules = layers::Rules::read(&root.join("layers.toml"))?;
    let mut findings = layers::check(&rules, &packages);
    findings.extend(islands::check(&rules, &packages)?);
    let list = fs::read_to_string(root.join(growth::LIST));
    let bounds = growth::Bounds::parse(&list.map_err(|why| format!("{}: {why}", growth::LIST))?)?;
    let list = fs::read_to_string(root.join(ratchet::LIST));
    let ratchets =
        ratchet::Ratchets::parse(&list.map_err(|why| format!("{}: {why}", ratchet::LIST))?)?;
    let mut tally = ratchet::Tally::default();
    for path in source::files(root)? {
        let source = source::read(root, &path)?;
        tally.add(&path, &source);
        findings.extend(lines::check(&path, &source));
        findings.extend(bounds.check(&path, &source));
        findings.extend(globals::check(&path, &source));
        if scripts::has_scripts(&path) {
            findings.extend(scripts::check(&path, &read(root, &path)?));
        }
    }
    findings.extend(ratchets.check(&tally));
    findings.extend(subjects::check(root));
    for path in documents::files(root)? {
        findings.extend(documents::check(root, &path, &read(root, &path)?));
    }
    Ok(findings)
}

fn read(root: &Path, path: &Path) -> Result<String, String> {
    fs::read_to_string(root.join(path)).map_err(|why| format!("{}: {why}", path.display()))
}
