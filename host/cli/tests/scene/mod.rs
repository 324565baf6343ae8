//! A user's folders for one test, with a QEMU that only says its version.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::process::Command;

/// The folder, removed afterwards, which holds what a user keeps: machines, volumes, images.
pub struct Scene(pub PathBuf);

impl Scene {
    pub fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("sietch-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).expect("a folder for the test");
        fs::write(path.join("kernel"), "").expect("a kernel's place");
        let qemu = path.join("qemu");
        fs::write(&qemu, "#!/bin/sh\necho QEMU emulator version 10.0.2\n").expect("a script");
        fs::set_permissions(&qemu, fs::Permissions::from_mode(0o755)).expect("made executable");
        Self(path)
    }

    /// From now on a machine runs until somebody ends it: QEMU is a process that sleeps.
    #[allow(
        dead_code,
        reason = "each test program has this module, and not all need all of it"
    )]
    pub fn let_machines_run(&self) {
        let (qemu, sleeper) = (self.0.join("qemu"), self.0.join("qemu-sleeps"));
        symlink("/bin/sleep", &sleeper).expect("a link");
        let text = format!(
            "#!/bin/sh\n[ \"$1\" = --version ] || exec {} 600\necho QEMU emulator version 10.0.2\n",
            sleeper.display()
        );
        fs::write(qemu, text).expect("a script");
    }

    pub fn sietch(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sietch"));
        command
            .args(args)
            .env("XDG_RUNTIME_DIR", &self.0)
            .env("XDG_DATA_HOME", &self.0)
            .env("SIETCH_KERNEL", self.0.join("kernel"))
            .env("SIETCH_QEMU", self.0.join("qemu"));
        command
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
