//! docs/docker-flags.md says the truth about each flag of `docker run` and `podman run`.

use std::collections::BTreeSet;
use std::process::Command;

use cli::flags::RunFlags;
use cli::flags::refused::{REFUSED, sentence};

const PAGE: &str = include_str!("../../../docs/docker-flags.md");

/// What makes sense for a machine is supported to this share, in percent.
const SHARE_MIN: usize = 80;

/// Examples, and what the page says of each.
fn rows() -> Vec<(Vec<&'static str>, &'static str)> {
    let row = |line: &'static str| {
        let (example, rest) = line.strip_prefix("| `")?.split_once("` | ")?;
        let (kind, _) = rest.split_once(" |")?;
        Some((example.split(' ').collect(), kind))
    };
    PAGE.lines().filter_map(row).collect()
}

#[test]
fn what_is_called_supported_is_parsed() {
    for (example, _) in rows().iter().filter(|(_, kind)| *kind == "supported") {
        if example == &["--help"] {
            continue;
        }
        let line = [&["sietch", "run"], example.as_slice(), &["true"]].concat();
        if let Err(error) = RunFlags::of_line(line) {
            panic!("{example:?}: {error}");
        }
    }
}

#[test]
fn what_is_not_supported_says_why_in_one_sentence_and_ends_with_125() {
    let mut named = BTreeSet::new();
    for (example, kind) in rows().iter().filter(|(_, kind)| *kind != "supported") {
        assert!(matches!(*kind, "refused" | "not applicable"), "{kind}");
        let flag = example[0];
        named.insert(flag.trim_start_matches('-'));
        let told = Command::new(env!("CARGO_BIN_EXE_sietch"))
            .args(["run", flag, "x", "true"])
            .output()
            .expect("runs");
        let words = String::from_utf8_lossy(&told.stderr).into_owned();
        assert_eq!(told.status.code(), Some(125), "{flag}: {words}");
        let wanted = sentence(flag).unwrap_or_else(|| panic!("{flag} has no sentence"));
        assert_eq!(words, format!("sietch: {wanted}\n"));
        assert!(wanted.contains(": ") && !wanted.contains('\n'), "{wanted}");
    }
    let refused: BTreeSet<&str> = REFUSED.iter().map(|(name, _)| *name).collect();
    assert_eq!(named, refused);
}

#[test]
fn most_of_what_makes_sense_for_a_machine_is_supported() {
    let count = |wanted: &str| rows().iter().filter(|(_, kind)| *kind == wanted).count();
    let (supported, refused) = (count("supported"), count("refused"));
    assert!(
        supported * 100 >= (supported + refused) * SHARE_MIN,
        "{supported} supported, {refused} refused"
    );
    let told = format!(
        "{supported} are supported, {refused} refused and {} not applicable",
        count("not applicable")
    );
    assert!(PAGE.contains(&told), "the page does not say: {told}");
}

#[test]
fn a_flag_with_its_value_behind_a_sign_is_the_same_flag() {
    assert_eq!(sentence("--userns=keep-id"), sentence("--userns"));
    assert_eq!(sentence("-c"), sentence("--cpu-shares"));
    assert_eq!(sentence("--no-such-flag"), None);
}
