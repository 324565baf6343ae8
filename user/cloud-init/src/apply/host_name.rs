//! The machine's name: the kernel's, `/etc/hostname` and its line of `/etc/hosts`.

use std::fs;
use std::io;
use std::path::Path;

use rustix::system::sethostname;

use super::files::{beneath, replace};

const HOSTS: &str = "/etc/hosts";
/// Debian's address for a machine's own name.
const OWN: &str = "127.0.1.1";

pub(super) fn set(root: &Path, name: &str) -> io::Result<()> {
    let short = name.split('.').next().unwrap_or(name);
    sethostname(short.as_bytes())?;
    replace(root, "/etc/hostname", &format!("{short}\n"))?;
    // An image may be without one.
    let before = fs::read(beneath(root, HOSTS)?).unwrap_or_default();
    let before = String::from_utf8_lossy(&before);
    replace(root, HOSTS, &hosts(&before, name, short))
}

/// The file with another name for this machine.
fn hosts(before: &str, name: &str, short: &str) -> String {
    let is_other = |line: &&str| line.split_whitespace().next() != Some(OWN);
    let others = before.lines().filter(is_other);
    let mut text: String = others.map(|line| format!("{line}\n")).collect();
    let whole = if name == short {
        String::new()
    } else {
        format!("{name} ")
    };
    text += &format!("{OWN}\t{whole}{short}\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_takes_the_place_of_the_one_before() {
        let before = "127.0.0.1\tlocalhost\n127.0.1.1\tbuilt\n10.0.0.3\tdb";
        assert_eq!(
            hosts(before, "web.example", "web"),
            "127.0.0.1\tlocalhost\n10.0.0.3\tdb\n127.0.1.1\tweb.example web\n"
        );
    }
}
