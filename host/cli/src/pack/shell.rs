//! `/bin/sh` for programs that call it.
//!
//! The C library runs `/bin/sh` in system(3) and popen(3), so the library itself does not tell who needs one: whoever
//! names these functions does, and whoever has the path in its own text (Node, git). A program that does neither, such as
//! Redis or nginx, has no shell in its machine, and who breaks into it finds none.

use std::fs;
use std::io::BufRead;
use std::path::Path;

use super::closure::Closure;
use super::elf::Needs;
use super::{Image, PackError};

const SHELL: &str = "/bin/sh";

/// Libraries that have the path for others.
const C_LIBRARIES: [&str; 4] = ["libc.so", "libc-", "ld-", "libpthread"];

/// Whether the file calls a shell.
pub(super) fn is_called(path: &Path, bytes: &[u8], needs: &Needs) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    if C_LIBRARIES.iter().any(|library| name.starts_with(library)) {
        return false;
    }
    needs.names_shell_call || contains_path(bytes)
}

/// By the standard library's search for a byte, which is fast in files of many megabytes.
fn contains_path(mut bytes: &[u8]) -> bool {
    while let Ok(1..) = bytes.skip_until(b'/') {
        if bytes.starts_with(&SHELL.as_bytes()[1..]) {
            return true;
        }
    }
    false
}

/// Adds the host's, unless the image has one or nothing calls it.
pub(super) fn add_if_called(image: &mut Image) -> Result<(), PackError> {
    let shell = Path::new(SHELL);
    if !image.calls_shell() || image.resolve(shell).is_some() {
        return Ok(());
    }
    let Ok(program) = fs::canonicalize(shell) else {
        // A host without a shell has programs that do without.
        return Ok(());
    };
    Closure::new(image).add_needs(&program)?;
    match image.has_folder(Path::new("/bin")) {
        true => image.add(&program, shell),
        false => image.add_same(shell),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_names_the_path_or_a_function_that_runs_it_calls_a_shell() {
        let by = |name: &str, bytes: &[u8], names_shell_call| {
            let needs = Needs {
                names_shell_call,
                ..Needs::default()
            };
            is_called(Path::new(name), bytes, &needs)
        };
        assert!(by("/usr/bin/x", b"\0/bin//bin/sh\0", false));
        assert!(by("/usr/bin/x", b"", true));
        assert!(!by("/usr/bin/x", b"/bin/s /bin", false));
        assert!(!by("/lib/libc.so.6", b"/bin/sh", true));
    }

    #[test]
    fn a_caller_gets_the_hosts_shell_with_its_loader_once() {
        let mut image = Image::new();
        add_if_called(&mut image).expect("nothing to do");
        assert!(image.resolve(Path::new(SHELL)).is_none());
        image.note_shell_caller();
        add_if_called(&mut image).expect("the host has one");
        assert!(image.resolve(Path::new(SHELL)).is_some());
        let mut own = Image::new();
        own.add_bytes(SHELL, 0o755, "mine");
        own.note_shell_caller();
        add_if_called(&mut own).expect("it has one");
        assert_eq!(own.host_files().count(), 0);
    }
}
