//! What is mounted where (proc_pid_mounts(5), proc_pid_mountinfo(5)).

use alloc::string::String;
use core::fmt::{Result, Write};

use super::task::Subject;
use crate::fs::mount::mounts as all;
use crate::fs::pseudo::Text;
use crate::fs::{Mount, MountFlags, Path, device_parts};

/// /proc/PID/mounts.
pub fn mounts(_subject: &Subject, text: &mut Text) -> Result {
    for mount in all() {
        escape(text, &mount.source);
        text.push(' ');
        escape(text, &Path::top_of(&mount).name());
        writeln!(text, " {} {} 0 0", mount.system.kind(), options(&mount))?;
    }
    Ok(())
}

/// /proc/PID/mountinfo.
pub fn mountinfo(_subject: &Subject, text: &mut Text) -> Result {
    for mount in all() {
        let parent = mount
            .covers
            .as_ref()
            .map_or(mount.id, |covered| covered.mount.id);
        let device = mount
            .root
            .inode()
            .metadata()
            .map_or(0, |metadata| metadata.device);
        let (major, minor) = device_parts(device);
        write!(text, "{} {parent} {major}:{minor} / ", mount.id)?;
        escape(text, &Path::top_of(&mount).name());
        write!(text, " {} - {} ", options(&mount), mount.system.kind())?;
        escape(text, &mount.source);
        writeln!(text, " {}", options(&mount))?;
    }
    Ok(())
}

fn options(mount: &Mount) -> String {
    let read_only = mount.flags.contains(MountFlags::RDONLY);
    let mut options = String::from(if read_only { "ro" } else { "rw" });
    let named = [
        (MountFlags::NOSUID, ",nosuid"),
        (MountFlags::NODEV, ",nodev"),
        (MountFlags::NOEXEC, ",noexec"),
        (MountFlags::NOATIME, ",noatime"),
    ];
    for (_, name) in named.iter().filter(|(flag, _)| mount.flags.contains(*flag)) {
        options.push_str(name);
    }
    options
}

/// Appends bytes with what separates fields written as an octal number.
fn escape(text: &mut Text, bytes: &[u8]) {
    for byte in bytes {
        match byte {
            b' ' => text.push_str("\\040"),
            b'\t' => text.push_str("\\011"),
            b'\n' => text.push_str("\\012"),
            b'\\' => text.push_str("\\134"),
            byte => text.push(char::from(*byte)),
        }
    }
}
