//! The file `/.sietch/run` in the image: how the kernel starts the first program.
//!
//! Records end with a NUL byte, so values may hold anything else: `arg=` and `env=`
//! repeated in order, `cwd=`, `user=UID:GID` of one that is not root, `group=GID` of each further group, `caps=HEX` (what
//! programs may have, if not all), `nnp=1` (exec grants nothing), `rlimit=NUMBER:SOFT:HARD`, `umask=OCTAL`,
//! `sysctl=NAME=VALUE`, and what we have for the program's input and output: by streams
//! `window=ROWSxCOLUMNS` and `stdio=` with a letter for each descriptor, by the serial port
//! `tty=1` if somebody sits there.

use super::Image;
use crate::flags::{RightsFlags, Ulimit};
use crate::stdio::{Console, Window};

/// Where the kernel looks.
pub const PATH: &str = "/.sietch/run";

/// The first program's surroundings.
#[derive(Clone, Debug, Default)]
pub struct RunFile {
    /// `argv`, from the program's own name on.
    pub arguments: Vec<String>,
    /// The environment as `NAME=value`.
    pub environment: Vec<String>,
    /// The working folder.
    pub folder: String,
    /// Its user and group; root if there is none.
    pub user: Option<(u32, u32)>,
    /// Further groups.
    pub groups: Vec<u32>,
    /// What it may do.
    pub rights: RightsFlags,
    /// What we have for its input and output.
    pub console: Console,
}

impl RunFile {
    /// Writes the file into an image.
    pub fn add_to(&self, image: &mut Image) {
        let mut text = Vec::new();
        let mut record = |key: &str, value: &str| {
            text.extend_from_slice(key.as_bytes());
            text.push(b'=');
            // A NUL inside would end the record; no argument of a process has one.
            text.extend(value.bytes().filter(|&byte| byte != 0));
            text.push(0);
        };
        self.arguments
            .iter()
            .for_each(|argument| record("arg", argument));
        self.environment
            .iter()
            .for_each(|variable| record("env", variable));
        record("cwd", &self.folder);
        if let Some((uid, gid)) = self.user {
            record("user", &format!("{uid}:{gid}"));
        }
        self.groups
            .iter()
            .for_each(|group| record("group", &group.to_string()));
        self.record_rights(&mut record);
        match self.console {
            Console::Serial { is_terminal: false } => {}
            Console::Serial { is_terminal: true } => record("tty", "1"),
            Console::Streams(stdio) => {
                let Window { rows, columns } = stdio.window;
                record("window", &format!("{rows}x{columns}"));
                record("stdio", &stdio.letters());
            }
        }
        image.add_folder("/.sietch", 0o700);
        image.add_bytes(PATH, 0o600, text);
    }

    fn record_rights(&self, record: &mut impl FnMut(&str, &str)) {
        if let Some(capabilities) = self.rights.capabilities() {
            record("caps", &format!("{capabilities:x}"));
        }
        if self.rights.gains_nothing() {
            record("nnp", "1");
        }
        for Ulimit { number, soft, hard } in &self.rights.ulimit {
            record("rlimit", &format!("{number}:{soft}:{hard}"));
        }
        if let Some(umask) = self.rights.umask {
            record("umask", &format!("{umask:o}"));
        }
        for (name, value) in &self.rights.sysctl {
            record("sysctl", &format!("{name}={value}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stdio::{StdFile, Stdio};

    #[test]
    fn records_end_with_nul_and_keep_their_order() {
        let mut image = Image::new();
        let run = RunFile {
            arguments: vec!["a".into(), "b c\n".into()],
            environment: vec!["X=1=2".into()],
            folder: "/".into(),
            user: Some((7, 8)),
            groups: vec![9],
            rights: RightsFlags {
                cap_drop: vec!["ALL".parse().expect("known")],
                ulimit: vec!["nofile=5:6".parse().expect("known")],
                sysctl: vec![("a.b".into(), "1 2".into())],
                umask: Some(0o27),
                ..RightsFlags::default()
            },
            console: Console::Streams(Stdio {
                files: [StdFile::Terminal, StdFile::Stream, StdFile::SameAsOutput],
                window: Window {
                    rows: 24,
                    columns: 80,
                },
                is_ours: true,
                is_open: true,
            }),
        };
        run.add_to(&mut image);
        let archive = image.to_cpio().expect("small");
        let mut entries = cpio::Archive::new(&archive).map(|entry| entry.expect("whole"));
        let file = entries
            .find(|entry| entry.name == b".sietch/run")
            .expect("written");
        assert_eq!(
            file.data,
            b"arg=a\0arg=b c\n\0env=X=1=2\0cwd=/\0user=7:8\0group=9\0caps=0\0rlimit=7:5:6\0umask=27\0sysctl=a.b=1 2\0window=24x80\0stdio=tso\0"
        );
    }
}
